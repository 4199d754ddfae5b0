#ifndef PANDO_CORE_REQUESTS_SESSION_LIMITS_H_
#define PANDO_CORE_REQUESTS_SESSION_LIMITS_H_

#include <cstdint>

namespace pando {

// The most that one session may hold at the same time; zero: no limit.
struct SessionLimits {
  uint32_t max_locks = 0;
  uint32_t max_reserved_pages = 0;
  // Tokens of prompts that its locks hold (HeldPrompt), 4 bytes each.
  uint32_t max_held_tokens = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_REQUESTS_SESSION_LIMITS_H_
