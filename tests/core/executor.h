#ifndef PANDO_TESTS_CORE_EXECUTOR_H_
#define PANDO_TESTS_CORE_EXECUTOR_H_

#include <array>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/ids.h"
#include "core/namespace_key.h"
#include "core/prefix_cache.h"
#include "tests/core/operations.h"
#include "tests/core/reference_cache.h"

namespace pando::program {

// Runs a program on a PrefixCache and on a ReferenceCache, side by side.
class Executor {
 public:
  explicit Executor(const PrefixCache::Options& options);

  // Returns what the two disagree on after the operation, and the invariants
  // that do not hold; empty when all is well.
  std::vector<std::string> Run(const Operation& operation);

  // Succeeded and failed operations so far, to see that a program does both.
  uint64_t succeeded() const { return succeeded_; }
  uint64_t failed() const { return failed_; }

 private:
  void operator()(const Match& match);
  void operator()(const Insert& insert);
  void operator()(const Lock& lock);
  void operator()(const Unlock& unlock);
  void operator()(const Allocate& allocate);
  void operator()(const Free& free);
  void operator()(const Evict& evict);
  void operator()(const Flush& flush);
  void operator()(const OpenSession& open);
  void operator()(const AttachSession& attach);
  void operator()(const CloseSession& close);
  void operator()(const SuspendSession& suspend);
  void operator()(const ResumeSession& resume);
  void operator()(const ProcessGone& end);
  void operator()(const ExpireSessions& expire);

  std::vector<Token> Tokens(const Prompt& prompt) const;
  LockId Choose(uint8_t slot, const LockChoice& choice) const;
  void Remember(LockId lock);
  void Spoil(std::vector<PageId>& pages, Fault fault) const;

  // Both return whether the real call succeeded.
  bool CompareStatus(const absl::Status& real, const absl::Status& model);
  template <typename T>
  void Compare(std::string_view what, const T& real, const T& model);
  void CompareStats();

  const PrefixCache::Options options_;
  PrefixCache real_;
  ReferenceCache model_;
  std::array<SessionId, kSlots> sessions_;
  uint64_t opened_ = 0;
  std::deque<LockId> seen_locks_;  // newest first, a few
  absl::Time now_ = absl::UnixEpoch();
  std::vector<std::string> differences_;
  uint64_t succeeded_ = 0;
  uint64_t failed_ = 0;
};

}  // namespace pando::program

#endif  // PANDO_TESTS_CORE_EXECUTOR_H_
