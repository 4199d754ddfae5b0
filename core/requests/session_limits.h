#ifndef PANDO_CORE_REQUESTS_SESSION_LIMITS_H_
#define PANDO_CORE_REQUESTS_SESSION_LIMITS_H_

#include <cstdint>

namespace pando {

// The most that one session may hold at the same time; zero: no limit.
struct SessionLimits {
  uint32_t max_locks = 0;
  uint32_t max_reserved_pages = 0;
  // Bytes that are kept for the session: prompts that its locks hold
  // (HeldPrompt), stored answers, places of its block locks and reservations,
  // open kinds, and memory that KeptBytes count.
  uint64_t max_kept_bytes = 0;
  // Blocks; each counts once for each lock, or each reservation.
  uint32_t max_block_locks = 0;
  uint32_t max_reserved_blocks = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_REQUESTS_SESSION_LIMITS_H_
