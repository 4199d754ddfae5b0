#ifndef PANDO_CORE_REUSE_CLASS_TOURNAMENT_H_
#define PANDO_CORE_REUSE_CLASS_TOURNAMENT_H_

#include <array>
#include <bitset>
#include <compare>
#include <cstdint>
#include <vector>

#include "core/nodes/node.h"
#include "core/reuse/reuse_class.h"

namespace pando {

// Finds the leaf with the least index of all classes of ReuseClass, by a
// tournament (a winner tree) in which each class takes part with its own first
// leaf. A class that has changed is played again only when the first leaf is
// asked for: O(log classes) for each changed class. Owned by ReusePolicy; not
// thread-safe.
class ClassTournament {
 public:
  // The first leaf of a class, or null, and what it is compared by: the smaller
  // index goes first, then the earlier last access.
  struct First {
    Node* leaf = nullptr;
    float index = 0;
    uint64_t last_access = 0;

    friend bool operator==(const First&, const First&) = default;

    bool Precedes(const First& other) const {
      if (leaf == nullptr || other.leaf == nullptr) return leaf != nullptr;
      return index != other.index ? index < other.index
                                  : last_access < other.last_access;
    }
  };

  ClassTournament() {
    changed_.reserve(kReuseClasses);
    for (uint32_t i = kReuseClasses; i-- > 1;) {
      winners_[i] = static_cast<uint16_t>(PlayerAt(2 * i));
    }
  }

  void MarkChanged(uint32_t reuse_class) {
    if (is_changed_[reuse_class]) return;
    is_changed_.set(reuse_class);
    changed_.push_back(static_cast<uint16_t>(reuse_class));
  }

  // Returns the first leaf of all classes, or null if there is no leaf.
  // `first_of` returns the First of a class.
  template <typename F>
  Node* Least(F&& first_of) {
    for (const uint16_t reuse_class : changed_) {
      is_changed_.reset(reuse_class);
      const First first = first_of(reuse_class);
      if (first == firsts_[reuse_class]) continue;
      firsts_[reuse_class] = first;
      Settle(reuse_class);
    }
    changed_.clear();
    return firsts_[winners_[1]].leaf;
  }

 private:
  uint32_t PlayerAt(uint32_t entry) const {
    return entry < kReuseClasses ? winners_[entry] : entry - kReuseClasses;
  }
  // Where another class won before and wins again, nothing changes above.
  void Settle(uint32_t reuse_class) {
    for (uint32_t i = (kReuseClasses + reuse_class) / 2; i > 0; i /= 2) {
      const uint32_t a = PlayerAt(2 * i);
      const uint32_t b = PlayerAt(2 * i + 1);
      const auto winner =
          static_cast<uint16_t>(firsts_[b].Precedes(firsts_[a]) ? b : a);
      if (winner == winners_[i] && winner != reuse_class) return;
      winners_[i] = winner;
    }
  }

  // The first leaf of each class. A class in changed_ still has its old one.
  std::array<First, kReuseClasses> firsts_{};
  // A tree in an array: entry i is the winner of entries 2i and 2i + 1, and
  // class c takes part as entry kReuseClasses + c.
  std::array<uint16_t, kReuseClasses> winners_{};
  std::vector<uint16_t> changed_;
  std::bitset<kReuseClasses> is_changed_;
};

}  // namespace pando

#endif  // PANDO_CORE_REUSE_CLASS_TOURNAMENT_H_
