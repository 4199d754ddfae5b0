#ifndef PANDO_BASE_CHECK_H_
#define PANDO_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

// Ends the process when `condition` is false. Use it only for broken invariants
// of pandod's own code. For what a caller can cause, return a status.
#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) [[unlikely]] {                                  \
      std::fprintf(stderr, "%s:%d: broken invariant: %s\n", __FILE__, \
                   __LINE__, #condition);                             \
      std::abort();                                                   \
    }                                                                 \
  } while (false)

#endif  // PANDO_BASE_CHECK_H_
