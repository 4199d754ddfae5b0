#ifndef PANDO_SERVICE_RPC_EVENT_H_
#define PANDO_SERVICE_RPC_EVENT_H_

namespace pando {

// A tag on the completion queue. The polling thread calls Run when the
// operation that was started with this tag has completed. The event must live
// until then.
class Event {
 public:
  virtual ~Event() = default;
  // `ok` is false when the operation did not take place: the server is
  // shutting down, or the peer is gone.
  virtual void Run(bool ok) = 0;
};

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_EVENT_H_
