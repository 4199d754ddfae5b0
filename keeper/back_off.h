#ifndef PANDO_KEEPER_BACK_OFF_H_
#define PANDO_KEEPER_BACK_OFF_H_

#include <algorithm>
#include <chrono>

namespace pando::keeper {

// Says how long to wait before pandod is started again. After ten short lives
// in a row, each further one makes the wait longer, up to five seconds. A life
// is short if it takes less than ten seconds.
class BackOff {
 public:
  using Clock = std::chrono::steady_clock;

  // Returns how long to wait after a pandod that lived for `life`.
  Clock::duration After(Clock::duration life) {
    if (life >= kLongLife) short_lives_ = 0;
    ++short_lives_;
    return std::min<Clock::duration>(
        kLongest, kStep * std::max(0, short_lives_ - kAtOnce));
  }

 private:
  static constexpr std::chrono::seconds kLongLife{10};
  static constexpr int kAtOnce = 10;
  static constexpr std::chrono::milliseconds kStep{100};
  static constexpr std::chrono::seconds kLongest{5};

  int short_lives_ = 0;
};

}  // namespace pando::keeper

#endif  // PANDO_KEEPER_BACK_OFF_H_
