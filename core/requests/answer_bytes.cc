#include "core/requests/answer_bytes.h"

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"

namespace pando {
namespace {

// The beginning of an answer's bytes: what it contains beside page ids, which
// follow in two lists. Fields that a type of answer does not have are 0.
struct Head {
  uint64_t id = 0;
  uint32_t type = 0;    // the index in Answer
  uint32_t tokens = 0;  // matched, existing or locked
  uint64_t lock = 0;
  uint64_t node = 0;  // of the handle
  uint32_t handle_tokens = 0;
  uint32_t freed_duplicates = 0;
  uint32_t is_pending = 0;
  std::array<uint32_t, 2> pages = {};
  uint32_t unused = 0;
};
static_assert(sizeof(Head) == 56);
static_assert(std::is_trivially_copyable_v<PageId>);

struct Parts {
  Head head;
  std::array<std::span<const PageId>, 2> pages = {};
};

PrefixHandle HandleIn(const Head& head) {
  return {.node = head.node, .tokens = head.handle_tokens};
}

struct PartsOf {
  Parts operator()(const MatchResult& result) const {
    return {.head = {.tokens = result.matched_tokens,
                     .lock = result.lock.value(),
                     .node = result.handle.node,
                     .handle_tokens = result.handle.tokens,
                     .is_pending = result.is_pending ? 1u : 0u},
            .pages = {result.pages, result.reserved}};
  }
  Parts operator()(const InsertResult& result) const {
    return {.head = {.tokens = result.existing_tokens,
                     .node = result.handle.node,
                     .handle_tokens = result.handle.tokens,
                     .freed_duplicates = result.freed_duplicates},
            .pages = {result.canonical_pages}};
  }
  Parts operator()(const LockResult& result) const {
    return {.head = {.tokens = result.locked_tokens,
                     .lock = result.lock.value(),
                     .node = result.handle.node,
                     .handle_tokens = result.handle.tokens}};
  }
  Parts operator()(const AllocateResult& result) const {
    return {.head = {}, .pages = {result.pages}};
  }
  Parts operator()(const Unlocked&) const { return {}; }
  Parts operator()(const Freed&) const { return {}; }
};

template <typename T, size_t I = 0>
constexpr uint32_t TypeOf() {
  if constexpr (std::is_same_v<std::variant_alternative_t<I, Answer>, T>) {
    return I;
  } else {
    return TypeOf<T, I + 1>();
  }
}

std::optional<Answer> AnswerFrom(const Head& head, std::vector<PageId> pages,
                                 std::vector<PageId> more) {
  switch (head.type) {
    case TypeOf<MatchResult>():
      return MatchResult{.matched_tokens = head.tokens,
                         .pages = std::move(pages),
                         .lock = LockId(head.lock),
                         .reserved = std::move(more),
                         .handle = HandleIn(head),
                         .is_pending = head.is_pending != 0};
    case TypeOf<InsertResult>():
      return InsertResult{.existing_tokens = head.tokens,
                          .canonical_pages = std::move(pages),
                          .freed_duplicates = head.freed_duplicates,
                          .handle = HandleIn(head)};
    case TypeOf<LockResult>():
      return LockResult{.lock = LockId(head.lock),
                        .locked_tokens = head.tokens,
                        .handle = HandleIn(head)};
    case TypeOf<AllocateResult>():
      return AllocateResult{.pages = std::move(pages)};
    case TypeOf<Unlocked>():
      return Unlocked();
    case TypeOf<Freed>():
      return Freed();
    default:
      return std::nullopt;
  }
}

size_t RoundUpTo8(size_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace

size_t EncodedBytes(const Answer& answer) {
  const Parts parts = std::visit(PartsOf(), answer);
  return RoundUpTo8(sizeof(Head) + parts.pages[0].size_bytes() +
                    parts.pages[1].size_bytes());
}

void Encode(RequestId id, const Answer& answer, std::span<std::byte> out) {
  Parts parts = std::visit(PartsOf(), answer);
  parts.head.id = id.value();
  parts.head.type = static_cast<uint32_t>(answer.index());
  size_t at = sizeof(Head);
  for (size_t i = 0; i < parts.pages.size(); ++i) {
    const std::span<const PageId> pages = parts.pages[i];
    parts.head.pages[i] = static_cast<uint32_t>(pages.size());
    CHECK(at + pages.size_bytes() <= out.size());
    if (pages.empty()) continue;
    std::memcpy(out.data() + at, pages.data(), pages.size_bytes());
    at += pages.size_bytes();
  }
  std::memcpy(out.data(), &parts.head, sizeof(Head));
}

std::optional<KeptAnswer> TakeAnswer(std::span<const std::byte>& bytes) {
  Head head;
  if (bytes.size() < sizeof(head)) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof(head));
  std::array<std::vector<PageId>, 2> pages;
  size_t at = sizeof(head);
  for (size_t i = 0; i < pages.size(); ++i) {
    const size_t size = size_t{head.pages[i]} * sizeof(PageId);
    if (size > bytes.size() - at) return std::nullopt;
    pages[i].resize(head.pages[i]);
    if (size > 0) std::memcpy(pages[i].data(), bytes.data() + at, size);
    at += size;
  }
  if (head.id == 0 || RoundUpTo8(at) > bytes.size()) return std::nullopt;
  std::optional<Answer> answer =
      AnswerFrom(head, std::move(pages[0]), std::move(pages[1]));
  if (!answer.has_value()) return std::nullopt;
  bytes = bytes.subspan(RoundUpTo8(at));
  return KeptAnswer{RequestId(head.id), *std::move(answer)};
}

}  // namespace pando
