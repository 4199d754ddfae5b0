#ifndef PANDO_BASE_STRONG_ID_H_
#define PANDO_BASE_STRONG_ID_H_

#include <compare>
#include <ostream>
#include <utility>

namespace pando {

// An integer that names one kind of thing and does not mix with others.
// A plain value: copy it. The default value is 0.
template <typename Tag, typename Rep>
class StrongId {
 public:
  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep value) : value_(value) {}

  constexpr Rep value() const { return value_; }

  friend constexpr auto operator<=>(StrongId, StrongId) = default;

  template <typename H>
  friend H AbslHashValue(H state, StrongId id) {
    return H::combine(std::move(state), id.value_);
  }

  friend std::ostream& operator<<(std::ostream& out, StrongId id) {
    return out << id.value_;
  }

 private:
  Rep value_ = 0;
};

}  // namespace pando

#endif  // PANDO_BASE_STRONG_ID_H_
