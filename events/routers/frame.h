#ifndef PANDO_EVENTS_ROUTERS_FRAME_H_
#define PANDO_EVENTS_ROUTERS_FRAME_H_

#include <cstdint>
#include <memory>
#include <string>

namespace pando {

// One numbered message of the stream. The payload is shared between the history
// and all subscribers, and never copied.
struct Frame {
  uint64_t sequence = 0;
  std::shared_ptr<const std::string> payload;
};

}  // namespace pando

#endif  // PANDO_EVENTS_ROUTERS_FRAME_H_
