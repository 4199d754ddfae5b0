#ifndef PANDO_TESTS_CORE_EXECUTOR_H_
#define PANDO_TESTS_CORE_EXECUTOR_H_

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "core/operators/policy_change.h"
#include "core/prefix_cache.h"
#include "core/requests/namespace_key.h"
#include "tests/core/differences.h"
#include "tests/core/event_mirror.h"
#include "tests/core/handle_pairs.h"
#include "tests/core/operations.h"
#include "tests/core/reference_cache.h"

namespace pando::program {

// Runs a program on a PrefixCache and on a ReferenceCache, side by side.
class Executor {
 public:
  // Says which side takes the events of the real cache: this class or the test.
  enum class Events { kComparedHere, kTakenByCaller };

  // The constructor sets Options::on_wait_over. Run checks all invariants and
  // the events after every `check_every` operations.
  explicit Executor(const PrefixCache::Options& options,
                    uint64_t check_every = 1,
                    Events events = Events::kComparedHere);

  // Runs the operation on both caches. Returns the points on which their
  // answers differ and the invariants that do not hold; empty if there are
  // none.
  std::vector<std::string> Run(const Operation& operation);

  // The numbers of operations that succeeded and failed so far. The numbers
  // show whether a program does both.
  uint64_t succeeded() const { return succeeded_; }
  uint64_t failed() const { return failed_; }
  CacheCounters counters() { return real_.Stats().counters; }
  PrefixCache& real() { return real_; }
  // All cached pages, as the reference knows them.
  EventMirror::Pages Cached() const;
  // The reference's index, which has all cached prefixes.
  const ReferenceIndex& cached() const { return model_.index(); }

 private:
  void operator()(const Match& match);
  void operator()(const Score& score);
  void operator()(const CancelWait& cancel);
  void operator()(const Insert& insert);
  void operator()(const Lock& lock);
  void operator()(const Unlock& unlock);
  void operator()(const Allocate& allocate);
  void operator()(const Free& free);
  void operator()(const Evict& evict);
  void operator()(const EvictToWatermark& evict);
  void operator()(const Flush& flush);
  void operator()(const FlushNamespace& flush);
  void operator()(const SetPolicy& set);
  void operator()(const OpenSession& open);
  void operator()(const AttachSession& attach);
  void operator()(const CloseSession& close);
  void operator()(const SuspendSession& suspend);
  void operator()(const ResumeSession& resume);
  void operator()(const WriterGone& end);
  void operator()(const FreeQuarantine& free);
  void operator()(const ExpireSessions& expire);

  // The place where a prompt begins, and the tokens of the prompt that are
  // sent.
  struct Start {
    NamespaceKey ns;
    HandlePairs::Pair after;
    Place place;  // the prompt's start if the handle is gone
    std::vector<Token> tokens;
  };
  using Forgery = HandleChoice::Forgery;
  Start StartOf(const Prompt& prompt, const HandleChoice& after) const;
  std::vector<Token> Spell(const Prompt& prompt, const Place& start,
                           Forgery forgery) const;
  HandlePairs::Pair Choose(const HandleChoice& choice) const;
  LockId Choose(uint8_t slot, const LockChoice& choice) const;
  template <typename T>
  static void Remember(std::deque<T>& seen, T id) {
    seen.push_front(id);
    if (seen.size() > kRemembered) seen.pop_back();
  }
  void Spoil(std::vector<PageId>& pages, Fault fault) const;

  // Returns whether the real call succeeded.
  bool CompareStatus(const absl::Status& real, const absl::Status& model);
  void CompareHandles(const PrefixHandle& real, const PrefixHandle& model);
  void CompareRoom(const PageRoom& real);
  void CompareFlush(const FlushResult& real, const FlushResult& model);
  void CompareWaitsOver();
  void CompareEvents(EventMirror& mirror);
  // Takes one step of the policy change in progress. Returns the policy that
  // was set before that step.
  EvictionPolicyKind StepPolicy();
  void CompareStats();

  static constexpr size_t kRemembered = 16;
  static constexpr uint32_t kNodesAStep = 8;  // in a change of policy

  const uint32_t page_tokens_;
  const uint32_t capacity_pages_;
  const bool learns_always_;
  const uint64_t check_every_;
  std::vector<ReferenceFlights::Over> waits_over_;  // of the real cache
  PrefixCache real_;
  ReferenceCache model_;
  std::optional<PolicyChange> policy_change_;
  EvictionPolicyKind wanted_policy_;
  std::array<SessionId, kSlots> sessions_;
  uint64_t opened_ = 0;
  std::deque<LockId> seen_locks_;  // the newest few, newest first
  std::deque<WaitId> seen_waits_;  // the newest few, newest first
  HandlePairs handles_;
  std::optional<EventMirror> mirror_;  // of the real cache
  absl::Time now_ = absl::UnixEpoch();
  Differences differences_;
  uint64_t operations_ = 0;
  uint64_t succeeded_ = 0;
  uint64_t failed_ = 0;
};

}  // namespace pando::program

#endif  // PANDO_TESTS_CORE_EXECUTOR_H_
