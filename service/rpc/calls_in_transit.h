#ifndef PANDO_SERVICE_RPC_CALLS_IN_TRANSIT_H_
#define PANDO_SERVICE_RPC_CALLS_IN_TRANSIT_H_

#include <list>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "os/turn_actions.h"
#include "service/rpc/event.h"

namespace pando {

// Limits how many calls of one connection are in transit: their request is
// being read, or their answer was not taken by the peer yet. The others are
// left where they are, in the few bytes that a peer may send unread. So what a
// peer neither completes nor reads costs pandod little memory, and delays its
// own calls alone.
//
// Owned by RpcServer; lives on the polling thread.
class CallsInTransit {
 public:
  static constexpr int kMaxOfConnection = 16;

  // `next` has RunNext called soon, in another turn; it outlives this.
  explicit CallsInTransit(Wakeup* next) : next_(next) {}

  // Whether one more call of `connection` may go on now. Otherwise
  // `call->Run(true)` is called in some later turn, before the calls that wait
  // already if it `is_first`. The call must live until then, or until the
  // server's end.
  bool Enter(const std::string& connection, Event* call, bool is_first);
  // A call that waits to go on does so no more.
  void Withdraw(const std::string& connection, Event* call);
  // A call that may go on is in transit no longer.
  void Leave(const std::string& connection);

  // Runs one of the calls that may go on.
  void RunNext();

 private:
  struct Connection {
    int calls = 0;
    std::list<Event*> queue;
  };

  Wakeup* const next_;
  absl::flat_hash_map<std::string, Connection> connections_;
  // Calls that may go on: each has the place of one that has left. They are run
  // one in a turn, however many may go on at once.
  std::list<Event*> ready_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_CALLS_IN_TRANSIT_H_
