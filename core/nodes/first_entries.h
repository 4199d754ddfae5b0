#ifndef PANDO_CORE_NODES_FIRST_ENTRIES_H_
#define PANDO_CORE_NODES_FIRST_ENTRIES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace pando {

// Keeps only the first `limit` entries, in the order `Less`, of all that are
// added to it: O(log limit) for each entry. Not thread-safe.
template <typename T, typename Less>
class FirstEntries {
 public:
  explicit FirstEntries(size_t limit) : limit_(limit) {}

  void Add(T entry) {
    ++seen_;
    if (first_.size() == limit_) {
      if (limit_ == 0 || !Less()(entry, first_.front())) return;
      std::pop_heap(first_.begin(), first_.end(), Less());
      first_.pop_back();
    }
    first_.push_back(std::move(entry));
    std::push_heap(first_.begin(), first_.end(), Less());
  }

  // How many entries were added, whether they were kept or not.
  uint32_t seen() const { return seen_; }

  // Moves the entries out, in order.
  std::vector<T> Take() {
    std::sort_heap(first_.begin(), first_.end(), Less());
    return std::exchange(first_, {});
  }

 private:
  const size_t limit_;
  uint32_t seen_ = 0;
  std::vector<T> first_;  // a heap, whose front is the last in order
};

}  // namespace pando

#endif  // PANDO_CORE_NODES_FIRST_ENTRIES_H_
