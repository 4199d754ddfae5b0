#include "clients/lane/arena.h"

#include <algorithm>

#include "lane/layout.h"

namespace pando::lane {

std::optional<size_t> Arena::Take(size_t bytes) {
  if (bytes > bytes_) return std::nullopt;
  const size_t size =
      (std::max<size_t>(bytes, 1) + kCacheLine - 1) / kCacheLine * kCacheLine;
  size_t begin = 0;
  auto next = used_.begin();
  while (next != used_.end() && next->begin - begin < size) {
    begin = next->end;
    ++next;
  }
  if (bytes_ - begin < size) return std::nullopt;
  used_.insert(next, {begin, begin + size});
  return begin;
}

void Arena::GiveBack(size_t offset) {
  const auto range = std::find_if(
      used_.begin(), used_.end(),
      [offset](const Range& used) { return used.begin == offset; });
  if (range != used_.end()) used_.erase(range);
}

}  // namespace pando::lane
