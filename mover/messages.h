// The messages between pandod and its pando-movers over a Unix stream socket.
// Both are of one build, on one machine.
#ifndef PANDO_MOVER_MESSAGES_H_
#define PANDO_MOVER_MESSAGES_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace pando::mover {

// Another one is of another version.
inline constexpr uint64_t kMagic = 0x31766d646e6170;  // "pandmv1"

// As many as a pool has at most.
inline constexpr size_t kMaxShards = 250;
// A mover has at most as many orders under way; further ones wait in the
// socket.
inline constexpr size_t kMaxOrders = 64;

// Text, ended by a zero.
using Name = std::array<char, 128>;
using Reason = std::array<char, 256>;

// The mover begins: which shards it wants.
struct Hello {
  uint64_t magic = kMagic;
  Name device = {};  // as in KvShard
};

// Where the pieces of a page lie in a shard, each those of one layer and plane:
// piece i of page p begins at p * page_stride + i * piece_stride. In a block
// they lie one after the other.
struct PageGeometry {
  uint64_t pieces = 0;
  uint64_t page_stride = 0;
  uint64_t piece_stride = 0;
  uint64_t piece_bytes = 0;

  uint64_t page_bytes() const { return pieces * piece_bytes; }
};

// pandod's answer. Its descriptors are those of the transfer memory, and of the
// shards. A refusal has none.
struct Welcome {
  uint64_t magic = kMagic;
  Reason refusal = {};  // empty: the mover is welcome
  uint32_t capacity_pages = 0;
  uint32_t num_shards = 0;
  // A shard's number says which part of a block is its own.
  std::array<uint32_t, kMaxShards> shards = {};
  PageGeometry geometry;
  uint64_t shard_bytes = 0;
  uint64_t transfer_bytes = 0;
};

enum class Direction : uint32_t { kOut, kIn };

// Copy all shards' parts of a page to a block (kOut), or back (kIn).
struct Order {
  uint64_t id = 0;
  uint64_t block = 0;  // where it begins in the transfer memory, in bytes
  uint32_t page = 0;
  Direction direction = Direction::kOut;
};

// The first one, with id 0, says that the mover has mapped all; then there is
// one for each order, which it does not touch any more. They come as the orders
// end, not as they were given.
struct Reply {
  uint64_t id = 0;
  uint32_t is_done = 0;  // 0: it failed; the mover's log says why
  uint32_t reserved = 0;
};

}  // namespace pando::mover

#endif  // PANDO_MOVER_MESSAGES_H_
