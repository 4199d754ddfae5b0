#ifndef PANDO_SERVICE_RPC_CALLS_IN_TRANSIT_H_
#define PANDO_SERVICE_RPC_CALLS_IN_TRANSIT_H_

#include <list>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "os/turn_actions.h"
#include "service/rpc/event.h"

namespace pando {

// Limits how many calls of one connection are in transit. A call is in transit
// while its request is being read, and while the peer has not taken its answer.
// The other calls stay unread, in the few bytes that a peer may send ahead. So
// a peer that completes no request, or reads no answer, costs pandod little
// memory, and delays only its own calls.
//
// Owned by RpcServer; lives on the polling thread.
class CallsInTransit {
 public:
  // The most calls of one connection in transit.
  static constexpr int kMaxOfConnection = 16;

  // `next` is a wakeup whose action calls RunNext; it outlives this.
  explicit CallsInTransit(Wakeup* next) : next_(next) {}

  // Returns whether one more call of `connection` may go on now; it is in
  // transit from then on. Otherwise the call waits, and `call->Run(true)` is
  // called in some later turn; with `is_first`, before the calls that wait
  // already. The call must live until then, until Withdraw, or until the
  // server's end.
  bool Enter(const std::string& connection, Event* call, bool is_first);
  // Makes a call that waits to go on wait no more.
  void Withdraw(const std::string& connection, Event* call);
  // Tells that a call which may go on is in transit no longer.
  void Leave(const std::string& connection);

  // Runs one of the waiting calls that may go on now.
  void RunNext();

 private:
  struct Connection {
    int calls = 0;
    std::list<Event*> queue;
  };

  Wakeup* const next_;
  absl::flat_hash_map<std::string, Connection> connections_;
  // Waiting calls that may go on, because each has got the place of a call that
  // has left. One of them is run in each turn, however many there are.
  std::list<Event*> ready_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_CALLS_IN_TRANSIT_H_
