#ifndef PANDO_CLIENTS_LANE_ARENA_H_
#define PANDO_CLIENTS_LANE_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace pando::lane {

// Allocates ranges of a lane's arena, first fit: a caller with one call at a
// time uses the same memory again and again, which stays in the CPU's cache.
// Owned by Lane; not thread-safe.
class Arena {
 public:
  // `bytes` in all; at most `ranges` are in use at the same time.
  Arena(size_t bytes, size_t ranges) : bytes_(bytes) { used_.reserve(ranges); }

  // The offset of a range, a multiple of a cache line; none: no gap is large
  // enough.
  std::optional<size_t> Take(size_t bytes);
  // REQUIRES: Take gave this offset.
  void GiveBack(size_t offset);

 private:
  struct Range {
    size_t begin;
    size_t end;
  };

  const size_t bytes_;
  std::vector<Range> used_;  // in order
};

}  // namespace pando::lane

#endif  // PANDO_CLIENTS_LANE_ARENA_H_
