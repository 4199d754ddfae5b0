#ifndef PANDO_CORE_REUSE_REQUEST_FACTS_H_
#define PANDO_CORE_REUSE_REQUEST_FACTS_H_

#include <cstdint>

namespace pando {

// The facts that the cache keeps of a request while it runs. The request's lock
// stores it from the admission to the last insert. Plain data.
struct RequestFacts {
  // The tick at which it last used its pages; 0 if nothing is learnt from this
  // request.
  uint32_t tick = 0;
  // Its next use of pages is its first. Only the first use counts.
  bool is_new = false;
  uint32_t prompt_tokens = 0;
  uint32_t new_tokens = 0;     // neither cached nor ghosts
  uint32_t output_tokens = 0;  // so far
};

}  // namespace pando

#endif  // PANDO_CORE_REUSE_REQUEST_FACTS_H_
