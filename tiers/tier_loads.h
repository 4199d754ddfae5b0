#ifndef PANDO_TIERS_TIER_LOADS_H_
#define PANDO_TIERS_TIER_LOADS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/kept_bytes.h"
#include "core/nodes/page_hash.h"
#include "core/requests/namespace_key.h"
#include "os/turn_actions.h"
#include "tiers/lookup_calls.h"
#include "tiers/mover.h"
#include "tiers/prefix_loader.h"
#include "tiers/tier_stack.h"

namespace pando {

// Loads prefixes from tiers for calls that may wait. One thread looks prompts
// up: it hashes their tokens, and never touches the disk, but may ask a shared
// store. Another one loads, and erases what was forgotten.
// What is loaded is published in chunks, so that who waits can see it grow.
// Owned by Tiers; what is public is used in the turn.
class TierLoads final : public PrefixLoader {
 public:
  // All outlive this; no server has started yet. Fewer than
  // `min_load_tokens` tokens are not worth a load.
  TierLoads(Mover* mover, TierStack* tiers, TurnActions* actions,
            uint32_t min_load_tokens);
  ~TierLoads() override;

  absl::StatusOr<bool> Begin(Resumable& call, SessionId session,
                             const PrefixQuery& query, LoadAction action,
                             absl::Time deadline) override;
  bool BeginTelling(Resumable& call, std::span<const PrefixQuery> queries,
                    absl::Time deadline) override;
  std::optional<LookedUp> End(const Resumable& call) override {
    return calls_.End(call);
  }
  Kept FindKept(const PrefixQuery& query) override;
  LoadObstacle FindObstacle(uint32_t matched_tokens,
                            uint32_t kept_tokens) override;
  std::shared_ptr<const void> Pause() override { return mover_->Pause(); }
  // Loads that have begun end. The index forgets soon after this, before the
  // next lookup.
  void Forget(const NamespaceKey& ns) override { ForgetSoon(ns); }
  void ForgetAll() override { ForgetSoon(std::nullopt); }
  // Told once, by the first worker that says which configuration of the model
  // it has. Only what the tiers have of it is found after that.
  void SetModel(const std::string& model_digest);
  // Runs the handlers of all calls that wait for a lookup again.
  void ResumeAll() { calls_.ResumeAll(); }

 private:
  struct Lookup {
    uint64_t id;
    NamespaceKey ns;
    std::vector<Token> tokens;
    size_t pages;  // that the tokens spell, and the caller wants
    LoadAction action;
    uint64_t generation;  // of the mover
    KeptBytes kept = {};  // the tokens; of calls without a session, nothing
  };
  struct Load {
    uint64_t lookup;
    LoadAction action;
    NamespaceKey ns;
    uint64_t ns_digest;
    std::vector<PageHash> hashes;  // of the prompt up to what is loaded
    Mover::Reservation reservation;
    KeptBytes kept;  // those of the lookup, which had no less

    size_t locked_pages() const {
      return reservation.matched_pages + reservation.pages.size();
    }
  };

  // Whether it is worth it to hash this prompt.
  bool IsWorthALookup(const PrefixQuery& query, LoadAction action);
  // Whether so many more tokens may wait to be looked up.
  bool HasRoomToLookUp(size_t tokens) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Lookup LookupOf(uint64_t id, const PrefixQuery& query, LoadAction action);
  void RunLookups();
  void ForgetSoon(std::optional<NamespaceKey> ns);
  void ForgetNow(const std::optional<NamespaceKey>& ns);
  void SetModelNow(const std::string& model_digest);
  Kept LookUp(Lookup& lookup);
  // After `cached` pages of a prompt, `kept` follow.
  Kept KeptAfter(size_t cached, const TierStack::KeptRun& kept) const;
  // How many pages after the `cached` ones of a prompt a load that has begun
  // brings.
  size_t CountLoading(std::span<const PageHash> prompt, size_t cached);
  // Begins to load what follows the cached pages, as far as it is stored and
  // there is room for it. Returns how many pages these are.
  size_t BeginLoad(Lookup& lookup, std::vector<PageHash> hashes, size_t cached);
  // Whether what has not begun is still to be loaded.
  bool IsWanted(const Load& load);
  bool IsWorthALoad(size_t pages) const {
    return pages > 0 && pages * page_tokens_ >= min_load_tokens_;
  }
  // How many pages may be loaded after `cached` ones of a prompt, beside those
  // that other loads have locked or reserved.
  size_t SparePages(size_t cached);
  void RunLoads();
  void LoadAndPublish(const Load& load);
  bool HasLookup() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_stopped_ || !lookups_.empty() || !flushed_.empty() ||
           !model_digest_.empty();
  }
  bool HasLoad() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_stopped_ || has_forgotten_ || !loads_.empty();
  }
  bool is_stopped() {
    absl::MutexLock hold(&mutex_);
    return is_stopped_;
  }

  Mover* const mover_;
  TierStack* const tiers_;
  const uint32_t page_tokens_;
  const uint32_t min_load_tokens_;
  const size_t max_locked_pages_;  // by all loads together
  LookupCalls calls_;
  PageHasher hasher_;  // the lookup thread's alone

  absl::Mutex mutex_;
  std::deque<Lookup> lookups_ ABSL_GUARDED_BY(mutex_);
  size_t lookup_tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  // Namespaces to be forgotten; none: all.
  std::vector<std::optional<NamespaceKey>> flushed_ ABSL_GUARDED_BY(mutex_);
  // To be told to the tiers; empty: nothing.
  std::string model_digest_ ABSL_GUARDED_BY(mutex_);
  // The tiers have blocks to be erased.
  bool has_forgotten_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Load> loads_ ABSL_GUARDED_BY(mutex_);
  const Load* under_way_ ABSL_GUARDED_BY(mutex_) = nullptr;
  size_t locked_pages_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread lookup_thread_;
  std::thread load_thread_;
};

}  // namespace pando

#endif  // PANDO_TIERS_TIER_LOADS_H_
