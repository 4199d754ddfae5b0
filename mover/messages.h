// The messages between pandod and its pando-movers over a Unix stream socket.
// Both are of one build, on one machine.
#ifndef PANDO_MOVER_MESSAGES_H_
#define PANDO_MOVER_MESSAGES_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace pando::mover {

// A peer that sends another number is of another version.
inline constexpr uint64_t kMagic = 0x31766d646e6170;  // "pandmv1"

// The most shards that a pool has.
inline constexpr size_t kMaxShards = 250;
// A mover has at most so many orders under way; further ones wait in the
// socket.
inline constexpr size_t kMaxOrders = 64;

// Both are text that ends with a zero byte.
using Name = std::array<char, 128>;
using Reason = std::array<char, 256>;

// The mover's first message. It says which device's shards the mover wants.
struct Hello {
  uint64_t magic = kMagic;
  Name device = {};  // as in KvShard
};

// Says where the pieces of a page lie in a shard; a piece is the part of one
// layer and plane. Piece i of page p begins at byte p * page_stride + i *
// piece_stride. In a block the pieces lie one after the other. Strides and
// sizes are in bytes.
struct PageGeometry {
  uint64_t pieces = 0;
  uint64_t page_stride = 0;
  uint64_t piece_stride = 0;
  uint64_t piece_bytes = 0;

  uint64_t page_bytes() const { return pieces * piece_bytes; }
};

// pandod's answer to a Hello. The descriptor of the transfer memory comes with
// it, then those of the shards. A refusal has no descriptors.
struct Welcome {
  uint64_t magic = kMagic;
  Reason refusal = {};  // empty: the mover is welcome
  uint32_t capacity_pages = 0;
  uint32_t num_shards = 0;
  // The numbers of the shards. Shard n has the n-th part of a block.
  std::array<uint32_t, kMaxShards> shards = {};
  PageGeometry geometry;
  uint64_t shard_bytes = 0;
  uint64_t transfer_bytes = 0;
};

enum class Direction : uint32_t { kOut, kIn };

// Tells the mover to copy the parts of a page in all its shards to a block
// (kOut), or back (kIn).
struct Order {
  uint64_t id = 0;
  uint64_t block = 0;  // where it begins in the transfer memory, in bytes
  uint32_t page = 0;
  Direction direction = Direction::kOut;
};

// A message of the mover. The first one, with id 0, says that the mover has
// mapped all memory. Then there is one for each order, once the mover touches
// neither page nor block any more. Replies come in the order in which the
// orders end.
struct Reply {
  uint64_t id = 0;
  uint32_t is_done = 0;  // 0: it failed; the mover's log says why
  uint32_t reserved = 0;
};

}  // namespace pando::mover

#endif  // PANDO_MOVER_MESSAGES_H_
