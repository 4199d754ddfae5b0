// Blocks of a kind with keys of 32 bytes, in chains of 100.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/check.h"
#include "core/block_cache.h"

namespace pando::bench {
namespace {

constexpr uint64_t kBlockBytes = 65'536;
constexpr uint64_t kExtentBytes = uint64_t{16} << 20;
constexpr uint64_t kChain = 100;
constexpr uint64_t kHotKeys = 500;

// A memory for so many blocks, with one kind and one session.
class Blocks {
 public:
  explicit Blocks(uint64_t blocks)
      : cache_({.page_tokens = 16,
                .capacity_pages = 2,
                .blocks = {.memory_bytes = RoundUp(blocks * kBlockBytes),
                           .extent_bytes = kExtentBytes}}) {
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
    const std::vector<BlockKeys> asked = {
        {.kind = kind_, .keys = keys, .before = {}}};
    CHECK(blocks_.Reserve({kSession, ReservationId(1), asked}).ok());
    CHECK(blocks_.Publish(kSession, ReservationId(1), {}).ok());
  }
  void Fill(uint64_t blocks) {
    for (; stored_ < blocks; stored_ += kChain) Store(Keys(stored_, kChain));
  }
  std::string NextChain() {
    stored_ += kChain;
    return Keys(stored_ - kChain, kChain);
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
  static uint64_t RoundUp(uint64_t bytes) {
    return (bytes + kExtentBytes - 1) / kExtentBytes * kExtentBytes;
  }

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

}  // namespace
}  // namespace pando::bench
