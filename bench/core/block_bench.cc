// Blocks of a kind with keys of 32 bytes, in chains of 100.
#include <benchmark/benchmark.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "core/block_cache.h"
#include "core/block_calls/block_ends.h"
#include "core/blocks/block_ledger.h"

namespace pando::bench {
namespace {

constexpr uint64_t kBlockBytes = 65'536;
constexpr uint64_t kExtentBytes = uint64_t{16} << 20;
constexpr uint64_t kChain = 100;
constexpr uint64_t kHotKeys = 500;
constexpr uint64_t kFilled = 2'000'000;
constexpr int kHolds = 20;

double ThreadMilliseconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 +
         static_cast<double>(time.tv_nsec) * 1e-6;
}

// A memory for so many blocks.
BlockOptions OptionsFor(uint64_t blocks) {
  const uint64_t extents =
      (blocks * kBlockBytes + kExtentBytes - 1) / kExtentBytes;
  return {.memory_bytes = extents * kExtentBytes, .extent_bytes = kExtentBytes};
}

// Blocks of one kind, for one session.
class Blocks {
 public:
  explicit Blocks(uint64_t blocks) : Blocks(OptionsFor(blocks)) {}
  explicit Blocks(const BlockOptions& options)
      : cache_({.page_tokens = 16, .capacity_pages = 2, .blocks = options}) {
    cache_.OpenSession(kSession, "bench");
    const std::vector<KindSpec> specs = {{.ns = {},
                                          .identity = "kind",
                                          .label = "",
                                          .key_bytes = 32,
                                          .shard_bytes = kBlockBytes,
                                          .shards = 1}};
    kind_ = blocks_.OpenKinds(kSession, specs)->front().number;
  }

  // The keys of a chain, one after the other.
  static std::string Keys(uint64_t first, uint64_t count) {
    std::string keys;
    for (uint64_t i = first * 4; i < (first + count) * 4; ++i) {
      uint64_t word = (i + 1) * 0x9e3779b97f4a7c15;
      word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
      word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
      word ^= word >> 31;
      keys.append(reinterpret_cast<const char*>(&word), sizeof(word));
    }
    return keys;
  }

  void Store(const std::string& keys) {
    Reserve(ReservationId(1), keys);
    Publish(ReservationId(1));
  }
  void Reserve(ReservationId reservation, const std::string& keys) {
    const std::vector<BlockKeys> asked = {
        {.kind = kind_, .keys = keys, .before = {}}};
    CHECK(blocks_.Reserve({kSession, reservation, asked}).ok());
  }
  void Publish(ReservationId reservation) {
    CHECK(blocks_.Publish(kSession, reservation, {}).ok());
  }
  void Discard(ReservationId reservation) {
    CHECK(blocks_.Discard(kSession, reservation, std::vector<uint32_t>{}).ok());
  }
  // Publishes or discards a reservation. Returns the longest time for which it
  // holds the mutex at once, in milliseconds of CPU time: what other processes
  // do does not count.
  double LongestHold(ReservationId reservation,
                     BlockCompletion::Outcome outcome) {
    BlockCompletion completion(kSession, reservation, {}, outcome,
                               /*notes_keys=*/false);
    double longest = 0;
    for (bool is_done = false; !is_done;) {
      const double begin = ThreadMilliseconds();
      is_done = cache_.Step(completion);
      longest = std::max(longest, ThreadMilliseconds() - begin);
    }
    CHECK(completion.result().ok());
    return longest;
  }
  void Fill(uint64_t blocks) {
    for (; stored_ < blocks; stored_ += kChain) Store(Keys(stored_, kChain));
  }
  std::string NextChain(uint64_t blocks = kChain) {
    stored_ += blocks;
    return Keys(stored_ - blocks, blocks);
  }

  bool AreReady(const std::string& keys) {
    const std::vector<BlockKeys> asked = {{.kind = kind_,
                                           .keys = keys,
                                           .before = {},
                                           .shape = BlockShape::kPrefix}};
    const auto places = blocks_.Lookup(kSession, asked);
    return places.ok() && IsPlace(places->back());
  }
  uint64_t index_bytes() { return blocks_.Stats().index_bytes; }

 private:
  static constexpr SessionId kSession{1};

  PrefixCache cache_;
  BlockCache blocks_{&cache_};
  KindNumber kind_;
  uint64_t stored_ = 0;
};

// The times are those of one key: an iteration is one.
void BM_LookUpBlocks(benchmark::State& state) {
  Blocks blocks(static_cast<uint64_t>(state.range(0)));
  blocks.Fill(static_cast<uint64_t>(state.range(0)));
  const std::string keys = Blocks::Keys(0, kHotKeys);
  while (state.KeepRunningBatch(kHotKeys)) {
    if (!blocks.AreReady(keys)) state.SkipWithError("a block is not there");
  }
}
BENCHMARK(BM_LookUpBlocks)->Arg(1'000'000);

void BM_StoreBlocks(benchmark::State& state) {
  const auto count = static_cast<uint64_t>(state.range(0));
  Blocks blocks(count);
  while (state.KeepRunningBatch(kChain)) blocks.Store(blocks.NextChain());
}
BENCHMARK(BM_StoreBlocks)->Arg(1'000'000)->Iterations(500'000);

void BM_StoreBlocksInFull(benchmark::State& state) {
  const auto count = static_cast<uint64_t>(state.range(0));
  Blocks blocks(count);
  blocks.Fill(count + 1'000);
  while (state.KeepRunningBatch(kChain)) blocks.Store(blocks.NextChain());
}
BENCHMARK(BM_StoreBlocksInFull)->Arg(1'000'000)->Iterations(200'000);

void BM_BlockMemory(benchmark::State& state) {
  const auto count = static_cast<uint64_t>(state.range(0));
  for (auto _ : state) {
    Blocks blocks(count);
    blocks.Fill(count);
    state.counters["bytes_per_block"] =
        static_cast<double>(blocks.index_bytes()) / static_cast<double>(count);
  }
}
BENCHMARK(BM_BlockMemory)->Arg(1'000'000)->Arg(10'000'000)->Iterations(1);

// The process after a killed one takes its blocks over.
void BM_TakeBlocksOver(benchmark::State& state) {
  BlockOptions options = OptionsFor(static_cast<uint64_t>(state.range(0)));
  const uint64_t bytes = BlockLedger::BytesFor(options);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  options.ledger = {static_cast<std::byte*>(memory), bytes};
  Blocks(options).Fill(static_cast<uint64_t>(state.range(0)));
  BlockLedger::Complete(options.ledger);
  for (auto _ : state) {
    Blocks blocks(options);
    if (!blocks.AreReady(Blocks::Keys(0, kHotKeys))) {
      state.SkipWithError("a block is not there");
    }
  }
  munmap(memory, bytes);
}
BENCHMARK(BM_TakeBlocksOver)
    ->Arg(1'000'000)
    ->Iterations(3)
    ->Unit(benchmark::kMillisecond);

// As many blocks as a call may name are reserved by `prepare` and then
// published or discarded, some times.
template <typename Prepare>
void RecordHolds(benchmark::State& state, Blocks& blocks,
                 BlockCompletion::Outcome outcome, Prepare prepare) {
  double longest = 0;
  for (auto _ : state) {
    prepare();
    longest = std::max(longest, blocks.LongestHold(ReservationId(1), outcome));
  }
  state.counters["longest_ms"] = longest;
}

void BM_HoldOfPublishBlocks(benchmark::State& state) {
  Blocks blocks(kFilled);
  blocks.Fill(kFilled);
  RecordHolds(state, blocks, BlockCompletion::Outcome::kPublished, [&] {
    blocks.Reserve(ReservationId(1), blocks.NextChain(kMaxBlockKeys));
  });
}
BENCHMARK(BM_HoldOfPublishBlocks)->Iterations(kHolds);

// All of them took too long to be written, and were reserved anew.
void BM_HoldOfPublishOverdueBlocks(benchmark::State& state) {
  BlockOptions options = OptionsFor(kFilled);
  options.write_limit = absl::ZeroDuration();
  Blocks blocks(options);
  blocks.Fill(kFilled);
  RecordHolds(state, blocks, BlockCompletion::Outcome::kPublished, [&] {
    blocks.Discard(ReservationId(2));
    const std::string keys = blocks.NextChain(kMaxBlockKeys);
    blocks.Reserve(ReservationId(1), keys);
    blocks.Reserve(ReservationId(2), keys);
  });
}
BENCHMARK(BM_HoldOfPublishOverdueBlocks)->Iterations(kHolds);

void BM_HoldOfDiscardBlocks(benchmark::State& state) {
  Blocks blocks(kFilled);
  blocks.Fill(kFilled);
  RecordHolds(state, blocks, BlockCompletion::Outcome::kDiscarded, [&] {
    blocks.Reserve(ReservationId(1), blocks.NextChain(kMaxBlockKeys));
  });
}
BENCHMARK(BM_HoldOfDiscardBlocks)->Iterations(kHolds);

}  // namespace
}  // namespace pando::bench
