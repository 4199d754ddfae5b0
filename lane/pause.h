#ifndef PANDO_LANE_PAUSE_H_
#define PANDO_LANE_PAUSE_H_

namespace pando::lane {

// Tells the CPU that this thread is spinning, so that it saves power and yields
// to its sibling thread.
inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace pando::lane

#endif  // PANDO_LANE_PAUSE_H_
