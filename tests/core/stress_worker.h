#ifndef PANDO_TESTS_CORE_STRESS_WORKER_H_
#define PANDO_TESTS_CORE_STRESS_WORKER_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/prefix_cache.h"

namespace pando {

// The things that the workers of one stress test share: the cache, the memory
// that it hands out, and counts of the writers and readers of each page. The
// words of the memory are not atomic. Only the cache's answers order accesses
// to them, so the thread sanitizer reports each access that is too early.
struct StressWorld {
  // The constructor sets Options::on_wait_over.
  explicit StressWorld(PrefixCache::Options options)
      : cache(CountingWaits(std::move(options))),
        content(options.capacity_pages),
        writers(options.capacity_pages),
        readers(options.capacity_pages) {}

  PrefixCache::Options CountingWaits(PrefixCache::Options options) {
    options.on_wait_over = [this](WaitId, PendingOutcome) { ++waits_over; };
    return options;
  }

  std::atomic<uint64_t> waits_over{0};
  PrefixCache cache;
  std::vector<uint64_t> content;  // for each page, the hash of its whole prefix
  std::vector<std::atomic<int>> writers;
  std::vector<std::atomic<int>> readers;
  std::atomic<uint64_t> last_session{0};
};

// An engine's worker that also makes mistakes and sometimes dies. One thread
// owns the worker. The worker checks that pages reserved for it are reserved
// for no other worker, and that pages it has locked hold the KV of exactly its
// prompt.
class StressWorker {
 public:
  StressWorker(StressWorld& world, uint64_t seed)
      : world_(world), random_(seed) {
    OpenSession();
  }

  void RunOperation();
  // Ends the session, which gives back what the session holds.
  void Finish();

  // Returns the first error, or an empty string if there was none.
  const std::string& failure() const { return failure_; }
  // Counts to compare with the cache's counters.
  uint64_t hit_tokens() const { return hit_tokens_; }
  uint64_t allocated_pages() const { return allocated_pages_; }
  uint64_t inserted_pages() const { return inserted_pages_; }
  uint64_t locks_taken() const { return locks_taken_; }
  uint64_t evicted_pages() const { return evicted_pages_; }
  uint64_t lost_sessions() const { return lost_sessions_; }
  uint64_t waits() const { return waits_; }
  uint64_t cancelled_waits() const { return cancelled_waits_; }
  uint64_t repeats() const { return repeats_; }

 private:
  uint32_t Below(uint32_t limit) {
    return static_cast<uint32_t>(random_() % limit);
  }
  void OpenSession();
  void Attach();
  std::vector<Token> AnyPrompt();
  // Returns the namespace of a prompt, which the prompt's first token
  // determines.
  static const NamespaceKey& NamespaceOf(std::span<const Token> prompt);
  void ServeRequest();
  void LockAndUnlock();
  void AllocateAndFree();
  void Score();
  void WaitForAnother();
  void GiveUp();
  void ExpectNoRoom(const absl::Status& status);
  void RepeatAllocation();
  void Operate();
  void MakeMistakes();
  void Die();

  // Begin or end writing to pages. Each page may have one writer.
  void BeginWriting(std::span<const PageId> pages);
  void EndWriting(std::span<const PageId> pages);
  void CheckContent(std::span<const Token> tokens,
                    std::span<const PageId> pages);
  void Expect(bool holds, const char* what);
  void ExpectOk(const absl::Status& status);

  StressWorld& world_;
  std::mt19937_64 random_;
  SessionId session_;
  std::string failure_;
  uint64_t hit_tokens_ = 0;
  uint64_t allocated_pages_ = 0;
  uint64_t inserted_pages_ = 0;
  uint64_t locks_taken_ = 0;
  uint64_t evicted_pages_ = 0;
  uint64_t lost_sessions_ = 0;
  uint64_t last_request_ = 0;
  uint64_t waits_ = 0;
  uint64_t cancelled_waits_ = 0;
  uint64_t repeats_ = 0;
  std::optional<MatchResult> given_up_later_;
  // The end of a request that this worker served, and the tokens before that
  // end.
  PrefixHandle handle_;
  std::vector<Token> handled_;
};

}  // namespace pando

#endif  // PANDO_TESTS_CORE_STRESS_WORKER_H_
