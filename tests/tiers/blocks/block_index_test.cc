#include "tiers/blocks/block_index.h"

#include <algorithm>
#include <list>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/tiers/hashes.h"

namespace pando {
namespace {

BlockName NameOf(uint64_t kind, uint64_t key) { return {kind, HashOf(key)}; }

// Does the same as BlockIndex with a list of blocks, the oldest use first.
class ReferenceIndex {
 public:
  struct Block {
    BlockName name;
    uint64_t bytes;
    bool is_stored;
  };

  ReferenceIndex(uint64_t max_bytes, size_t max_blocks)
      : max_bytes_(max_bytes), max_blocks_(max_blocks) {}

  bool Has(const BlockName& name) const {
    const auto it = Find(name);
    return it != blocks_.end() && it->is_stored;
  }
  bool BeginStore(const BlockName& name, uint64_t bytes,
                  std::vector<BlockName>& evicted) {
    if (bytes > max_bytes_ || Find(name) != blocks_.end()) return false;
    while (used_bytes() + bytes > max_bytes_ || blocks_.size() == max_blocks_) {
      const auto oldest = std::ranges::find_if(blocks_, &Block::is_stored);
      if (oldest == blocks_.end()) return false;
      evicted.push_back(oldest->name);
      blocks_.erase(oldest);
    }
    blocks_.push_back({name, bytes, false});
    return true;
  }
  bool EndStore(const BlockName& name, bool is_written) {
    const auto it = Find(name);
    if (it == blocks_.end()) return false;
    if (!is_written) {
      blocks_.erase(it);
      return false;
    }
    it->is_stored = true;
    blocks_.splice(blocks_.end(), blocks_, it);
    return true;
  }
  void Touch(const BlockName& name) {
    if (Has(name)) blocks_.splice(blocks_.end(), blocks_, Find(name));
  }
  void Forget(const BlockName& name) {
    if (Has(name)) blocks_.erase(Find(name));
  }
  void ForgetKind(uint64_t kind) {
    for (const Block& block : blocks_) {
      if (block.name.kind == kind) erased_bytes_ += block.bytes;
    }
    blocks_.remove_if([&](const Block& b) { return b.name.kind == kind; });
  }
  void Freed(uint64_t bytes) { erased_bytes_ -= bytes; }
  uint64_t erased_bytes() const { return erased_bytes_; }
  uint64_t used_bytes() const {
    uint64_t bytes = erased_bytes_;
    for (const Block& block : blocks_) bytes += block.bytes;
    return bytes;
  }
  uint64_t count() const {
    return static_cast<uint64_t>(
        std::ranges::count_if(blocks_, &Block::is_stored));
  }

 private:
  std::list<Block>::iterator Find(const BlockName& name) {
    return std::ranges::find(blocks_, name, &Block::name);
  }
  std::list<Block>::const_iterator Find(const BlockName& name) const {
    return std::ranges::find(blocks_, name, &Block::name);
  }

  const uint64_t max_bytes_;
  const size_t max_blocks_;
  uint64_t erased_bytes_ = 0;
  std::list<Block> blocks_;
};

// Begins to store a block, and makes room for it as KeptBlocks does.
bool BeginStore(BlockIndex& index, const BlockName& name, uint64_t bytes,
                std::vector<BlockName>& evicted) {
  if (index.Knows(name) || bytes > index.max_bytes()) return false;
  while (!index.HasRoom(bytes)) {
    if (!index.EvictOldest(evicted)) return false;
  }
  index.BeginStore(name, bytes);
  return true;
}

bool Store(BlockIndex& index, const BlockName& name, uint64_t bytes) {
  std::vector<BlockName> evicted;
  return BeginStore(index, name, bytes, evicted) && index.EndStore(name, true);
}

TEST(BlockIndexTest, AgreesWithAListInRandomPrograms) {
  constexpr uint64_t kMaxBytes = 40;
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](uint32_t n) { return random() % n; };
  constexpr uint64_t kMaxBlocks = 9;
  BlockIndex index(kMaxBytes, kMaxBlocks);
  ReferenceIndex reference(kMaxBytes, kMaxBlocks);
  std::vector<BlockName> writing;
  for (int step = 0; step < 3'000; ++step) {
    const BlockName name = NameOf(below(3), below(12));
    switch (below(8)) {
      case 0:
      case 1:
      case 2: {
        // All blocks of a kind have one size, but a few blocks of the third
        // kind are larger than the tier.
        const uint64_t bytes =
            name.kind == 2 && below(20) == 0 ? 41 : 1 + name.kind * 4;
        std::vector<BlockName> evicted;
        std::vector<BlockName> expected;
        const bool has_begun = BeginStore(index, name, bytes, evicted);
        ASSERT_EQ(has_begun, reference.BeginStore(name, bytes, expected));
        ASSERT_EQ(evicted, expected);
        if (has_begun) writing.push_back(name);
        break;
      }
      case 3:
      case 4: {
        if (writing.empty()) break;
        const size_t which = below(static_cast<uint32_t>(writing.size()));
        const bool is_written = below(4) > 0;
        ASSERT_EQ(index.EndStore(writing[which], is_written),
                  reference.EndStore(writing[which], is_written));
        writing.erase(writing.begin() + static_cast<std::ptrdiff_t>(which));
        break;
      }
      case 5:
        index.Touch(name);
        reference.Touch(name);
        break;
      case 6:
        index.Forget(name);
        reference.Forget(name);
        break;
      case 7: {
        const uint64_t freed = below(2) * reference.erased_bytes();
        index.Freed(freed);
        reference.Freed(freed);
        if (below(10) > 0) break;
        const uint64_t before = reference.erased_bytes();
        reference.ForgetKind(name.kind);
        ASSERT_EQ(index.ForgetKind(name.kind),
                  reference.erased_bytes() - before);
        // Writes to the forgotten kind end before other writes to it begin.
        std::erase_if(writing, [&](const BlockName& w) {
          if (w.kind != name.kind) return false;
          EXPECT_FALSE(index.EndStore(w, true));
          return true;
        });
        EXPECT_FALSE(index.SweepSome());
        break;
      }
    }
    ASSERT_EQ(index.used_bytes(), reference.used_bytes());
    ASSERT_LE(index.used_bytes(), kMaxBytes);
    ASSERT_EQ(index.count(), reference.count());
    for (uint64_t kind = 0; kind < 3; ++kind) {
      for (uint64_t key = 0; key < 12; ++key) {
        ASSERT_EQ(index.Has(NameOf(kind, key)),
                  reference.Has(NameOf(kind, key)));
      }
    }
  }
}

TEST(BlockIndexTest, AForgottenKindGivesItsSlotsBackInSweepsOfSome) {
  constexpr uint64_t kBlocks = 3 * BlockIndex::kSlotsOfSweep;
  BlockIndex index(kBlocks, kBlocks);
  for (uint64_t i = 0; i < kBlocks; ++i) {
    ASSERT_TRUE(Store(index, NameOf(i % 2, i), 1));
  }
  const uint64_t memory = index.bytes();
  EXPECT_EQ(index.ForgetKind(0), kBlocks / 2);
  index.Freed(kBlocks / 2);
  EXPECT_FALSE(index.HasRoom(1));
  EXPECT_TRUE(index.SweepSome());
  EXPECT_TRUE(index.HasRoom(1));
  EXPECT_TRUE(index.SweepSome());
  EXPECT_FALSE(index.SweepSome());
  for (uint64_t i = 0; i < kBlocks; i += 2) {
    ASSERT_TRUE(Store(index, NameOf(2, i), 1));
  }
  EXPECT_EQ(index.count(), kBlocks);
  EXPECT_LE(index.bytes(), memory + (memory / 2));
}

TEST(BlockIndexTest, ABlockTakesAsMuchMemoryAsIsSaid) {
  constexpr uint64_t kBlocks = 100'000;
  BlockIndex index(kBlocks, kBlocks);
  for (uint64_t i = 0; i < kBlocks; ++i) {
    ASSERT_TRUE(Store(index, NameOf(1, i), 1));
  }
  EXPECT_LE(index.bytes(), kBlocks * (BlockIndex::kBytesOfBlock + 8));
}

}  // namespace
}  // namespace pando
