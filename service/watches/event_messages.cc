#include "service/watches/event_messages.h"

#include <algorithm>

#include "core/nodes/page_hash.h"
#include "service/handlers/wire.h"

namespace pando {
namespace {

constexpr size_t kMaxBlocks = 1'000;
constexpr size_t kMaxEventBytes = size_t{256} << 10;

// Returns how many pages one event may have (blocks, as events call them).
size_t MaxBlocks(uint32_t page_tokens) {
  const size_t block_bytes = sizeof(PageHash) + page_tokens * sizeof(Token);
  return std::clamp<size_t>(kMaxEventBytes / block_bytes, 1, kMaxBlocks);
}

// Calls `visit` with pieces of at most `size` elements.
template <typename T, typename F>
void ForEachPiece(std::span<const T> all, size_t size, F&& visit) {
  for (; !all.empty(); all = all.subspan(std::min(size, all.size()))) {
    visit(all.first(std::min(size, all.size())));
  }
}

}  // namespace

void EventMessages::Stored(const CachedPages& pages,
                           std::span<const PageId> run, const Emit& emit) {
  const NamespaceKey& ns = pages.ns(run.front());
  const uint32_t page_tokens = pages.page_tokens();
  ForEachPiece(run, MaxBlocks(page_tokens), [&](std::span<const PageId> piece) {
    event_.Clear();
    v1::BlocksStored& stored = *event_.mutable_stored();
    const PageId parent = pages.parent(piece.front());
    if (parent != kPaddingPage) {
      stored.set_parent_block_hash(pages.hash(parent).data(), sizeof(PageHash));
    }
    stored.mutable_tokens()->Reserve(
        static_cast<int>(piece.size() * page_tokens + 1));
    for (const PageId page : piece) {
      stored.add_block_hashes(pages.hash(page).data(), sizeof(PageHash));
      const std::span<const Token> tokens =
          pages.tokens(page).first(page_tokens);
      stored.mutable_tokens()->Add(tokens.begin(), tokens.end());
    }
    if (ns.bigram) stored.add_tokens(pages.tokens(piece.back()).back());
    stored.set_page_tokens(page_tokens);
    if (ns.extra_key.has_value()) stored.set_extra_key(*ns.extra_key);
    stored.set_has_cache_salt(ns.cache_salt.has_value());
    stored.set_bigram(ns.bigram);
    emit(event_);
  });
}

void EventMessages::Removed(const CachedPages& pages,
                            std::span<const PageId> removed,
                            EvictionReason reason, const Emit& emit) {
  ForEachPiece(removed, kMaxBlocks, [&](std::span<const PageId> piece) {
    event_.Clear();
    v1::BlocksRemoved& blocks = *event_.mutable_removed();
    blocks.set_reason(ReasonOnWire(reason));
    for (const PageId page : piece) {
      blocks.add_block_hashes(pages.hash(page).data(), sizeof(PageHash));
    }
    emit(event_);
  });
}

}  // namespace pando
