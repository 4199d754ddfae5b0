#ifndef PANDO_CORE_REUSE_REQUEST_FACTS_H_
#define PANDO_CORE_REUSE_REQUEST_FACTS_H_

#include <cstdint>

namespace pando {

// What is known of a request while it runs. A lock keeps it from the admission
// to the last insert. Plain data.
struct RequestFacts {
  // When it last used its pages; 0: it is no request that is learnt from.
  uint32_t tick = 0;
  // Its next use is the first one, which counts; what follows does not.
  bool is_new = false;
  uint32_t prompt_tokens = 0;
  uint32_t new_tokens = 0;     // not cached, nor evicted lately
  uint32_t output_tokens = 0;  // so far
};

}  // namespace pando

#endif  // PANDO_CORE_REUSE_REQUEST_FACTS_H_
