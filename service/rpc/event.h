#ifndef PANDO_SERVICE_RPC_EVENT_H_
#define PANDO_SERVICE_RPC_EVENT_H_

namespace pando {

// A tag on the completion queue: what happens when its operation is done.
// Outlives the operation. Run is called on the polling thread.
class Event {
 public:
  virtual ~Event() = default;
  // `ok` is false when the operation did not take place: the server is
  // shutting down, or the peer is gone.
  virtual void Run(bool ok) = 0;
};

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_EVENT_H_
