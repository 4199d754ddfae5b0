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

// Looks prompts up in the tiers and loads prefixes from them. The lookup thread
// hashes the tokens of prompts; it never touches the disk, but may ask a shared
// store. The load thread loads pages, and erases forgotten blocks. It publishes
// pages in chunks, so that a waiting call sees the prefix grow. Owned by Tiers.
// The public methods must be called in the turn, except for those that
// PrefixLoader marks as thread-safe.
class TierLoads final : public PrefixLoader {
 public:
  // The pointers must outlive this object, and no server may have started yet.
  // Fewer than `min_load_tokens` tokens are never loaded.
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
  // Both end the loads that have begun. The lookup thread makes the tiers
  // forget soon after that, before it looks up another prompt.
  void Forget(const NamespaceKey& ns) override { ForgetSoon(ns); }
  void ForgetAll() override { ForgetSoon(std::nullopt); }
  // Says which configuration of the model computes. Called once, when the first
  // worker has said which one it has. After that, only pages of this
  // configuration are found in the tiers.
  void SetModel(const std::string& model_digest);
  // Runs the handlers of all calls that wait for lookups again.
  void ResumeAll() { calls_.ResumeAll(); }

 private:
  // A prompt that waits to be looked up.
  struct Lookup {
    uint64_t id;
    NamespaceKey ns;
    std::vector<Token> tokens;
    size_t pages;  // those that the query asks for
    LoadAction action;
    uint64_t generation;  // of the mover
    KeptBytes kept = {};  // accounts for `tokens`; BeginTelling leaves it empty
  };
  // A load whose pages are reserved.
  struct Load {
    uint64_t lookup;
    LoadAction action;
    NamespaceKey ns;
    uint64_t ns_digest;
    std::vector<PageHash> hashes;  // of the prompt, up to the last page to load
    Mover::Reservation reservation;
    KeptBytes kept;  // the lookup's account; `hashes` takes no more than it

    size_t locked_pages() const {
      return reservation.matched_pages + reservation.pages.size();
    }
  };

  // Returns whether this prompt may have enough uncached pages to be worth
  // hashing.
  bool IsWorthALookup(const PrefixQuery& query, LoadAction action);
  // Returns whether `tokens` more tokens may wait to be looked up.
  bool HasRoomToLookUp(size_t tokens) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Lookup LookupOf(uint64_t id, const PrefixQuery& query, LoadAction action);
  void RunLookups();
  void ForgetSoon(std::optional<NamespaceKey> ns);
  void ForgetNow(const std::optional<NamespaceKey>& ns);
  void SetModelNow(const std::string& model_digest);
  Kept LookUp(Lookup& lookup);
  // Returns what is cached or kept of a prompt that has `cached` cached pages,
  // followed by those of `kept`.
  Kept KeptAfter(size_t cached, const TierStack::KeptRun& kept) const;
  // Returns how many pages after the `cached` ones of a prompt the loads that
  // have begun will bring.
  size_t CountLoading(std::span<const PageHash> prompt, size_t cached);
  // Begins to load the pages that follow the cached ones, as far as they are
  // stored and there is room for them. Returns how many these are.
  size_t BeginLoad(Lookup& lookup, std::vector<PageHash> hashes, size_t cached);
  // Returns whether a load whose copies have not begun is still wanted.
  bool IsWanted(const Load& load);
  bool IsWorthALoad(size_t pages) const {
    return pages > 0 && pages * page_tokens_ >= min_load_tokens_;
  }
  // Returns how many pages may be loaded after `cached` ones of a prompt, given
  // what other loads have locked and reserved.
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
  // The namespaces that are to be forgotten; an entry of none stands for all
  // namespaces.
  std::vector<std::optional<NamespaceKey>> flushed_ ABSL_GUARDED_BY(mutex_);
  // The model that is to be told to the tiers; empty if there is none to tell.
  std::string model_digest_ ABSL_GUARDED_BY(mutex_);
  // Whether the tiers have blocks that EraseForgotten is to erase.
  bool has_forgotten_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Load> loads_ ABSL_GUARDED_BY(mutex_);
  // The load that the load thread works on; null if there is none.
  const Load* under_way_ ABSL_GUARDED_BY(mutex_) = nullptr;
  size_t locked_pages_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread lookup_thread_;
  std::thread load_thread_;
};

}  // namespace pando

#endif  // PANDO_TIERS_TIER_LOADS_H_
