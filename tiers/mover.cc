#include "tiers/mover.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "core/requests/namespace.h"
#include "os/random_id.h"

namespace pando {
namespace {

std::span<const Token> TokensOfPages(const NamespaceKey& ns,
                                     std::span<const Token> tokens,
                                     size_t pages, uint32_t page_tokens) {
  return tokens.first(SpelledTokens(LookaheadOf(ns), pages, page_tokens));
}

// Holds the turn while pages are handed out or published, and ends it as a
// handler's turn ends.
class ABSL_SCOPED_LOCKABLE HeldTurn {
 public:
  explicit HeldTurn(Turn* turn) ABSL_EXCLUSIVE_LOCK_FUNCTION(turn->mutex())
      : turn_(turn) {
    turn_->mutex().Lock();
  }
  ~HeldTurn() ABSL_UNLOCK_FUNCTION() {
    turn_->AfterHandler();
    turn_->mutex().Unlock();
  }
  HeldTurn(const HeldTurn&) = delete;
  HeldTurn& operator=(const HeldTurn&) = delete;

 private:
  Turn* const turn_;
};

}  // namespace

Mover::Mover(PrefixCache* cache, Turn* turn, Verifier verifier,
             const PageMovers* movers)
    : cache_(cache),
      turn_(turn),
      verifier_(std::move(verifier)),
      movers_(movers),
      session_(RandomId()) {
  cache_->OpenSession(session_, "pandod-tiers", /*is_internal=*/true);
}

Mover::~Mover() { cache_->CloseSession(session_); }

void Mover::EndAll() {
  absl::MutexLock hold(&mutex_);
  ++generation_;
  // One by one, as an operator may have released some of them.
  for (const LockId lock : locks_) {
    cache_->Unlock(session_, {&lock, 1}).IgnoreError();
  }
  locks_.clear();
}

std::shared_ptr<const void> Mover::Pause() {
  EndAll();
  absl::MutexLock hold(&mutex_);
  std::shared_ptr<const void> pause = pause_.lock();
  if (pause == nullptr) pause = std::make_shared<const char>();
  pause_ = pause;
  return pause;
}

uint64_t Mover::generation() const {
  absl::MutexLock hold(&mutex_);
  return generation_;
}

size_t Mover::reserved_pages() const {
  absl::MutexLock hold(&mutex_);
  return reserved_pages_;
}

std::optional<Mover::LockedPrefix> Mover::Lock(const NamespaceKey& ns,
                                               std::span<const Token> tokens,
                                               size_t pages) {
  if (!CanCopy()) return std::nullopt;
  absl::MutexLock hold(&mutex_);
  if (IsPaused()) return std::nullopt;
  absl::StatusOr<MatchResult> match = cache_->Match(
      {.session = session_,
       .ns = ns,
       .tokens = TokensOfPages(ns, tokens, pages, cache_->page_tokens()),
       .lock = true,
       .touch = false});
  if (!match.ok()) return std::nullopt;
  locks_.insert(match->lock);
  return LockedPrefix{match->lock, std::move(match->pages)};
}

bool Mover::Unlock(LockId lock) {
  absl::MutexLock hold(&mutex_);
  return locks_.erase(lock) > 0 && cache_->Unlock(session_, {&lock, 1}).ok();
}

bool Mover::Holds(LockId lock) const {
  absl::MutexLock hold(&mutex_);
  return locks_.contains(lock);
}

std::optional<Mover::Reservation> Mover::Reserve(const NamespaceKey& ns,
                                                 std::span<const Token> tokens,
                                                 size_t pages,
                                                 uint64_t generation) {
  if (!CanCopy()) return std::nullopt;
  const uint32_t page_tokens = cache_->page_tokens();
  const HeldTurn turn(turn_);
  absl::MutexLock hold(&mutex_);
  if (IsPaused() || generation != generation_) return std::nullopt;
  absl::StatusOr<MatchResult> match = cache_->Match(
      {.session = session_,
       .ns = ns,
       .tokens = TokensOfPages(ns, tokens, pages, page_tokens),
       .lock = true,
       .reserve_tokens = static_cast<uint32_t>(pages * page_tokens),
       .touch = false});
  if (!match.ok()) return std::nullopt;
  locks_.insert(match->lock);
  reserved_pages_ += match->reserved.size();
  if (verifier_.reserved) verifier_.reserved(match->reserved);
  if (match->is_pending) {
    GiveBack(match->lock, match->reserved);
    return std::nullopt;
  }
  return Reservation{match->lock, match->matched_tokens / page_tokens,
                     std::move(match->reserved)};
}

bool Mover::Publish(const NamespaceKey& ns, LockId lock,
                    std::span<const PageId> rest, size_t count, bool is_last) {
  const HeldTurn turn(turn_);
  absl::MutexLock hold(&mutex_);
  if (count == 0) {
    GiveBack(lock, rest);
    return true;
  }
  const std::span<const PageId> pages = rest.first(count);
  const absl::StatusOr<InsertResult> inserted = cache_->Insert(
      {.session = session_,
       .ns = ns,
       .tokens = {},
       .pages = pages,
       .anchor = lock,
       .lock_action = is_last ? LockAction::kUnlock : LockAction::kRelock,
       .free_pages = is_last ? rest.subspan(count) : std::span<const PageId>(),
       .prompt_tokens = static_cast<uint32_t>(
           SpelledTokens(LookaheadOf(ns), count, cache_->page_tokens())),
       .is_load = true});
  if (!inserted.ok()) {
    GiveBack(lock, rest);
    return false;
  }
  reserved_pages_ -= is_last ? rest.size() : count;
  if (is_last) locks_.erase(lock);
  if (verifier_.inserted) {
    verifier_.inserted(pages.subspan(inserted->canonical_pages.size()));
  }
  return true;
}

// Errors are ignored, because the lock may have been released already.
void Mover::GiveBack(LockId lock, std::span<const PageId> pages) {
  reserved_pages_ -= pages.size();
  locks_.erase(lock);
  cache_->Free(session_, pages).IgnoreError();
  cache_->Unlock(session_, {&lock, 1}).IgnoreError();
}

}  // namespace pando
