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

// Actions that a test runs where a server would have the turn.
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

// Returns the files of blocks in a folder and below, in order. Lists them anew
// when some go meanwhile.
std::vector<std::filesystem::path> FilesIn(const std::string& folder);
// Truncates a file of a block, or changes a byte of it.
void Damage(const std::filesystem::path& file, std::mt19937& random);

// The block memory of one pandod, an engine of it, and a tier. What is stored
// in a folder outlives it.
class TieredMemory {
 public:
  // A call that waits for a reset.
  struct WaitingReset final : Resumable {
    void Resume() override { is_resumed = true; }

    bool is_resumed = false;
  };

  static constexpr uint64_t kExtentBytes = uint64_t{64} << 10;
  static constexpr uint32_t kKeyBytes = 40;  // more than a name has

  // With a disk tier.
  TieredMemory(const std::string& folder, uint64_t memory_bytes,
               uint64_t tier_bytes, bool stores_at_once = true);
  TieredMemory(uint64_t memory_bytes, BlockTier::Config tier);
  ~TieredMemory();

  BlockTier& tier() { return *tier_; }
  BlockCache& blocks() { return blocks_; }
  PrefixCache& cache() { return cache_; }
  SessionId session() const { return session_; }

  // A kind with two shards of this size.
  BlockKind Open(const std::string& identity, uint64_t shard_bytes);
  // Waits until it is so for the pandods after this one, too.
  BlockKind Reset(const BlockKind& kind);
  // Whether it is so already; else `call` waits for it. The kind is renewed.
  bool BeginReset(BlockKind& kind, Resumable& call);
  void Await(const WaitingReset& call);

  static std::string KeyOf(uint32_t number);
  static std::string KeysOf(const std::vector<uint32_t>& numbers);
  // Reserves what is missing of a row of keys, writes `seed`'s bytes, and
  // publishes them as a handler does. Returns which got places.
  std::vector<uint32_t> Store(const BlockKind& kind,
                              const std::vector<uint32_t>& numbers,
                              uint64_t seed);
  // Waits until each was stored, dropped, or could not be. REQUIRES: the tier,
  // the only one, had none of them, and no kind was reset since.
  void AwaitStores();
  // Asks the tier, as a handler does. Returns how many steps it took.
  size_t Ask(const AskedOfTier& asked, std::vector<BlockPlace>& places,
             uint32_t* found = nullptr);
  // Until nothing of them is being loaded.
  std::vector<BlockPlace> Load(const BlockKind& kind,
                               const std::vector<uint32_t>& numbers,
                               BlockShape shape = BlockShape::kEach,
                               uint32_t window = 0);
  // Whether the block at a place has the bytes of its number and this seed.
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
