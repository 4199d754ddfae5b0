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

// The same in a list, the oldest use first.
class ReferenceIndex {
 public:
  struct Block {
    BlockName name;
    uint64_t bytes;
    bool is_stored;
  };

  explicit ReferenceIndex(uint64_t max_bytes) : max_bytes_(max_bytes) {}

  bool Has(const BlockName& name) const {
    const auto it = Find(name);
    return it != blocks_.end() && it->is_stored;
  }
  bool BeginStore(const BlockName& name, uint64_t bytes,
                  std::vector<BlockName>& evicted) {
    if (bytes > max_bytes_ || Find(name) != blocks_.end()) return false;
    while (used_bytes() + bytes > max_bytes_) {
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
    blocks_.remove_if([&](const Block& b) { return b.name.kind == kind; });
  }
  uint64_t used_bytes() const {
    uint64_t bytes = 0;
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
  std::list<Block> blocks_;
};

TEST(BlockIndexTest, AgreesWithAListInRandomPrograms) {
  constexpr uint64_t kMaxBytes = 40;
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](uint32_t n) { return random() % n; };
  BlockIndex index(kMaxBytes);
  ReferenceIndex reference(kMaxBytes);
  std::vector<BlockName> writing;
  for (int step = 0; step < 3'000; ++step) {
    const BlockName name = NameOf(below(3), below(12));
    switch (below(8)) {
      case 0:
      case 1:
      case 2: {
        // Each kind has blocks of one size; the third is larger than the tier.
        const uint64_t bytes =
            name.kind == 2 && below(20) == 0 ? 41 : 1 + name.kind * 4;
        std::vector<BlockName> evicted;
        std::vector<BlockName> expected;
        const bool has_begun = index.BeginStore(name, bytes, evicted);
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
      case 7:
        if (below(10) > 0) break;
        index.ForgetKind(name.kind);
        reference.ForgetKind(name.kind);
        // Its writes end before others of it begin.
        std::erase_if(writing, [&](const BlockName& w) {
          if (w.kind != name.kind) return false;
          EXPECT_FALSE(index.EndStore(w, true));
          return true;
        });
        break;
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

TEST(BlockIndexTest, RestoresAsMuchAsThereIsRoomFor) {
  BlockIndex index(10);
  EXPECT_TRUE(index.Restore(NameOf(1, 1), 6));
  EXPECT_FALSE(index.Restore(NameOf(1, 2), 6));
  EXPECT_FALSE(index.Restore(NameOf(1, 1), 1));
  EXPECT_EQ(index.used_bytes(), 6u);
}

}  // namespace
}  // namespace pando
