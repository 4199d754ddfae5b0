#ifndef PANDO_CORE_SESSION_LIMITS_H_
#define PANDO_CORE_SESSION_LIMITS_H_

#include <cstdint>

namespace pando {

// What a session may have at once; zero: no limit.
struct SessionLimits {
  uint32_t max_locks = 0;
  uint32_t max_reserved_pages = 0;
  uint32_t max_held_tokens = 0;  // of prompts that locks hold, 4 bytes each
};

}  // namespace pando

#endif  // PANDO_CORE_SESSION_LIMITS_H_
