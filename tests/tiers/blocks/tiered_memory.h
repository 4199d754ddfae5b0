#ifndef PANDO_TESTS_TIERS_BLOCKS_TIERED_MEMORY_H_
#define PANDO_TESTS_TIERS_BLOCKS_TIERED_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/block_cache.h"
#include "core/prefix_cache.h"
#include "gpu/host_memory.h"
#include "tiers/blocks/block_tier.h"

namespace pando {

// Holds actions that a server would run in its turn. A test runs them with Run.
class RequestedActions final : public TurnActions {
 public:
  Wakeup* AddWakeup(std::function<void()> action) override;
  Timer* AddTimer(absl::Duration, std::function<void()>) override {
    return nullptr;
  }
  void Run();

 private:
  struct Requested final : Wakeup {
    void Request() override { is_requested = true; }

    std::atomic<bool> is_requested = false;
    std::function<void()> action;
  };

  std::deque<Requested> wakeups_;
};

// Returns the files in a folder and in all folders below it, sorted. Lists the
// files again if some disappear meanwhile.
std::vector<std::filesystem::path> FilesIn(const std::string& folder);
// Truncates the file of a block, or changes one byte of it.
void Damage(const std::filesystem::path& file, std::mt19937& random);

// The block memory of one pandod, with one engine and a tier. What is stored in
// the tier's folder outlives this object.
class TieredMemory {
 public:
  // A call that waits for a reset.
  struct WaitingReset final : Resumable {
    void Resume() override { is_resumed = true; }

    bool is_resumed = false;
  };

  static constexpr uint64_t kExtentBytes = uint64_t{64} << 10;
  static constexpr uint32_t kKeyBytes = 40;  // more than a block name has

  // Makes a memory with a disk tier in `folder`.
  TieredMemory(const std::string& folder, uint64_t memory_bytes,
               uint64_t tier_bytes, bool stores_at_once = true);
  TieredMemory(uint64_t memory_bytes, BlockTier::Config tier);
  ~TieredMemory();

  BlockTier& tier() { return *tier_; }
  BlockCache& blocks() { return blocks_; }
  PrefixCache& cache() { return cache_; }
  SessionId session() const { return session_; }

  // Opens a kind with two shards of `shard_bytes` bytes.
  BlockKind Open(const std::string& identity, uint64_t shard_bytes);
  // Resets a kind, and waits until the reset also holds for later pandods.
  // Returns the renewed kind.
  BlockKind Reset(const BlockKind& kind);
  // Begins a reset, and renews the kind. Returns whether the reset holds
  // already; if not, `call` waits for it.
  bool BeginReset(BlockKind& kind, Resumable& call);
  void Await(const WaitingReset& call);

  static std::string KeyOf(uint32_t number);
  static std::string KeysOf(const std::vector<uint32_t>& numbers);
  // Reserves blocks for the keys that have none, writes the bytes of `seed`,
  // and publishes the blocks as a handler does. Returns the numbers of these
  // blocks.
  std::vector<uint32_t> Store(const BlockKind& kind,
                              const std::vector<uint32_t>& numbers,
                              uint64_t seed);
  // Waits until each published block was stored or dropped, or could not be
  // stored. REQUIRES: the only tier had none of these blocks, and no kind was
  // reset since.
  void AwaitStores();
  // Asks the tier as a handler does. Returns the number of steps.
  size_t Ask(const AskedOfTier& asked, std::vector<BlockPlace>& places,
             uint32_t* found = nullptr);
  // Acquires blocks until none of them is being loaded. Returns their places.
  std::vector<BlockPlace> Load(const BlockKind& kind,
                               const std::vector<uint32_t>& numbers,
                               BlockShape shape = BlockShape::kEach,
                               uint32_t window = 0);
  // Returns whether the block at a place has the bytes of this number and seed.
  bool Holds(const BlockKind& kind, BlockPlace place, uint32_t number,
             uint64_t seed) const;

 private:
  std::byte* At(BlockPlace place) const {
    return mapped_ + place.value() * kPlaceBytes;
  }
  std::vector<std::byte> BytesOf(const BlockKind& kind, uint32_t number,
                                 uint64_t seed) const;

  const HostMemory memory_;
  std::byte* const mapped_;
  PrefixCache cache_;
  BlockCache blocks_;
  RequestedActions actions_;
  const SessionId session_{1};
  uint64_t last_id_ = 0;
  uint64_t published_ = 0;
  std::unique_ptr<BlockTier> tier_;
};

}  // namespace pando

#endif  // PANDO_TESTS_TIERS_BLOCKS_TIERED_MEMORY_H_
