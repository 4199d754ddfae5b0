#include "tests/core/stress_worker.h"

#include <iterator>
#include <optional>

#include "absl/time/time.h"
#include "core/requests/errors.h"

namespace pando {
namespace {

const NamespaceKey kNamespaces[] = {{}, {"lora", std::nullopt}};

uint64_t HashOf(std::span<const Token> tokens) {
  uint64_t hash = 14695981039346656037u;
  for (const Token token : tokens) hash = (hash ^ token) * 1099511628211u;
  return hash;
}

}  // namespace

const NamespaceKey& StressWorker::NamespaceOf(std::span<const Token> prompt) {
  return kNamespaces[prompt[0] % std::size(kNamespaces)];
}

void StressWorker::RunOperation() {
  const uint32_t kind = Below(100);
  if (kind < 50) return ServeRequest();
  if (kind < 60) return LockAndUnlock();
  if (kind < 67) return AllocateAndFree();
  if (kind < 75) return MakeMistakes();
  if (kind < 80) return Score();
  if (kind < 86) return WaitForAnother();
  if (kind < 90) return RepeatAllocation();
  if (kind < 95) return Operate();
  if (kind < 97) return Die();
  world_.cache.SuspendSession(session_, absl::InfiniteFuture());
  ExpectOk(world_.cache.ResumeSession(session_).status());
}

void StressWorker::Finish() { world_.cache.CloseSession(session_); }

void StressWorker::OpenSession() {
  session_ = SessionId(++world_.last_session);
  world_.cache.OpenSession(session_, "stress");
  if (Below(2) == 0) Attach();
}

void StressWorker::Attach() {
  ExpectOk(world_.cache.AttachSession(session_, WriterId(session_.value())));
}

// Returns one of few prompts, so that workers meet.
std::vector<Token> StressWorker::AnyPrompt() {
  std::vector<Token> prompt = {Below(2)};
  while (prompt.size() < 4) prompt.push_back(0);
  const uint32_t tokens = Below(40);
  while (prompt.size() < tokens) prompt.push_back(Below(8) / 7);
  return prompt;
}

// Serves one request: an admission, the computation of missing pages, one or
// two chunks, and the final insert.
void StressWorker::ServeRequest() {
  PrefixCache& cache = world_.cache;
  const uint32_t page_tokens = cache.page_tokens();
  const std::vector<Token> prompt = AnyPrompt();
  const auto length = static_cast<uint32_t>(prompt.size());
  const auto match = cache.Match({.session = session_,
                                  .ns = NamespaceOf(prompt),
                                  .tokens = prompt,
                                  .max_tokens = length - 1,
                                  .lock = true,
                                  .reserve_tokens = length});
  if (!match.ok()) return ExpectNoRoom(match.status());
  ++locks_taken_;
  hit_tokens_ += match->matched_tokens;
  allocated_pages_ += match->reserved.size();
  CheckContent(prompt, match->pages);
  BeginWriting(match->reserved);

  const auto rest = std::span(prompt).subspan(match->matched_tokens);
  const std::span reserved(match->reserved);
  const size_t whole = rest.size() / page_tokens;
  for (size_t i = 0; i < whole; ++i) {
    const size_t end = match->matched_tokens + (i + 1) * page_tokens;
    world_.content[reserved[i].value()] = HashOf(std::span(prompt).first(end));
  }
  const size_t chunk = Below(static_cast<uint32_t>(whole) + 1);
  const bool sends_prompt_again = Below(2) == 0;
  const auto insert = [&](size_t first, size_t count, LockAction action,
                          std::span<const PageId> free_pages) {
    const auto pages = reserved.subspan(first, count);
    EndWriting(pages);
    EndWriting(free_pages);
    const auto tokens = rest.subspan(first * page_tokens, count * page_tokens);
    const auto held = static_cast<uint32_t>(tokens.size());
    const auto inserted = cache.Insert(
        {.session = session_,
         .ns = {},
         .tokens = sends_prompt_again ? tokens : std::span<const Token>(),
         .pages = pages,
         .anchor = match->lock,
         .lock_action = action,
         .free_pages = free_pages,
         .prompt_tokens = sends_prompt_again ? 0 : held});
    ExpectOk(inserted.status());
    if (!inserted.ok()) return;
    inserted_pages_ += count - inserted->canonical_pages.size();
    Expect(inserted->freed_duplicates == inserted->canonical_pages.size(),
           "every duplicate is freed");
    handle_ = inserted->handle;
    handled_.assign(prompt.begin(), prompt.begin() + handle_.tokens);
  };
  insert(0, chunk, LockAction::kRelock, {});
  insert(chunk, whole - chunk, LockAction::kUnlock, reserved.subspan(whole));
}

void StressWorker::LockAndUnlock() {
  const std::vector<Token> prompt = AnyPrompt();
  const auto lock = world_.cache.Lock({session_, NamespaceOf(prompt), prompt});
  ExpectOk(lock.status());
  if (!lock.ok()) return;
  ++locks_taken_;
  const auto match = world_.cache.Match({.session = {},
                                         .ns = NamespaceOf(prompt),
                                         .tokens = prompt,
                                         .max_tokens = lock->locked_tokens,
                                         .touch = false});
  if (lock->locked_tokens > 0) {
    Expect(match.ok() && match->matched_tokens == lock->locked_tokens,
           "what is locked is cached");
    CheckContent(prompt, match->pages);
  }
  ExpectOk(world_.cache.Unlock(session_, std::vector{lock->lock}));
}

void StressWorker::AllocateAndFree() {
  const auto allocated =
      world_.cache.Allocate({session_, kNamespaces[0], Below(6)});
  if (!allocated.ok()) return;
  const std::vector<PageId>& pages = allocated->pages;
  allocated_pages_ += pages.size();
  BeginWriting(pages);
  for (PageId page : pages) world_.content[page.value()] = page.value();
  EndWriting(pages);
  ExpectOk(world_.cache.Free(session_, pages));
}

void StressWorker::MakeMistakes() {
  PrefixCache& cache = world_.cache;
  const std::vector<Token> prompt = AnyPrompt();
  const auto insert = cache.Insert({.session = session_,
                                    .ns = NamespaceOf(prompt),
                                    .tokens = prompt,
                                    .pages = std::vector{kPaddingPage}});
  Expect(!insert.ok(), "the padding page is never inserted");
  Expect(given_up_later_.has_value() ||
             !cache.Free(session_, std::vector{PageId(1)}).ok(),
         "a page that is not owned cannot be freed");
  Expect(!cache.Unlock(session_, std::vector{LockId(1)}).ok(),
         "an unknown lock cannot be released");
  Expect(!cache.Allocate({SessionId(), kNamespaces[0], 1}).ok(),
         "session 0 is nobody");
}

// Dies with a lock and reserved pages. Another process notices the death, and
// the worker comes back with a new session.
void StressWorker::Die() {
  given_up_later_.reset();
  PrefixCache& cache = world_.cache;
  const std::vector<Token> prompt = AnyPrompt();
  const auto match = cache.Match({.session = session_,
                                  .ns = NamespaceOf(prompt),
                                  .tokens = prompt,
                                  .lock = true,
                                  .reserve_tokens = 20});
  if (match.ok()) {
    ++locks_taken_;
    hit_tokens_ += match->matched_tokens;
    allocated_pages_ += match->reserved.size();
    BeginWriting(match->reserved);
    EndWriting(match->reserved);
  }
  ++lost_sessions_;
  Attach();
  const WriterId process(session_.value());
  if (Below(2) == 0) {
    cache.WriterGone(process);
    cache.SuspendSession(session_, absl::InfiniteFuture());
  } else {
    cache.SuspendSession(session_, absl::UnixEpoch());
    cache.ExpireSessions(absl::UnixEpoch(), absl::Seconds(Below(2)));
    cache.WriterGone(process);
  }
  OpenSession();
}

void StressWorker::BeginWriting(std::span<const PageId> pages) {
  for (PageId page : pages) {
    Expect(world_.writers[page.value()].exchange(1) == 0,
           "a reserved page has one owner");
    Expect(world_.readers[page.value()] == 0, "nobody reads a reserved page");
  }
}

void StressWorker::EndWriting(std::span<const PageId> pages) {
  for (PageId page : pages) world_.writers[page.value()] = 0;
}

// Checks the content of locked pages.
void StressWorker::CheckContent(std::span<const Token> tokens,
                                std::span<const PageId> pages) {
  for (size_t i = 0; i < pages.size(); ++i) {
    const uint32_t page = pages[i].value();
    ++world_.readers[page];
    Expect(world_.content[page] ==
               HashOf(tokens.first((i + 1) * world_.cache.page_tokens())),
           "a cached page holds the KV of its prefix");
    --world_.readers[page];
  }
}

void StressWorker::Expect(bool holds, const char* what) {
  if (!holds && failure_.empty()) failure_ = what;
}

void StressWorker::ExpectOk(const absl::Status& status) {
  if (!status.ok() && failure_.empty()) failure_ = status.ToString();
}

}  // namespace pando
