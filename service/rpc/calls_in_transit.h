#ifndef PANDO_SERVICE_RPC_CALLS_IN_TRANSIT_H_
#define PANDO_SERVICE_RPC_CALLS_IN_TRANSIT_H_

#include <list>
#include <string>

#include "absl/container/flat_hash_map.h"
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

  // Whether one more call of `connection` may go on now. Otherwise
  // `call->Run(true)` is called once it may; the call must live until then, or
  // until the server's end.
  bool Enter(const std::string& connection, Event* call);
  // A call that waits to go on does so no more.
  void Withdraw(const std::string& connection, Event* call);
  // A call that may go on is in transit no longer.
  void Leave(const std::string& connection);

 private:
  struct Connection {
    int calls = 0;
    std::list<Event*> queue;
  };

  absl::flat_hash_map<std::string, Connection> connections_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_CALLS_IN_TRANSIT_H_
