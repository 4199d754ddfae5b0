#ifndef PANDO_CLIENTS_LANE_ARENA_H_
#define PANDO_CLIENTS_LANE_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace pando::lane {

// Allocates ranges of a lane's arena, first fit. So a caller with one call at a
// time always uses the same memory, which stays in the CPU's cache. Owned by
// Lane; not thread-safe.
class Arena {
 public:
  // The arena has `bytes` bytes; at most `ranges` ranges are in use at the same
  // time.
  Arena(size_t bytes, size_t ranges) : bytes_(bytes) { used_.reserve(ranges); }

  // Takes a range and returns its offset, a multiple of a cache line. Returns
  // none if no gap is large enough.
  std::optional<size_t> Take(size_t bytes);
  // REQUIRES: Take gave this offset.
  void GiveBack(size_t offset);

 private:
  struct Range {
    size_t begin;
    size_t end;
  };

  const size_t bytes_;
  std::vector<Range> used_;  // in the order of their offsets
};

}  // namespace pando::lane

#endif  // PANDO_CLIENTS_LANE_ARENA_H_
