#include "service/rpc/calls_in_transit.h"

#include "base/check.h"

namespace pando {

bool CallsInTransit::Enter(const std::string& connection, Event* call) {
  Connection& entered = connections_[connection];
  if (entered.calls == kMaxOfConnection) {
    entered.queue.push_back(call);
    return false;
  }
  ++entered.calls;
  return true;
}

void CallsInTransit::Withdraw(const std::string& connection, Event* call) {
  connections_.at(connection).queue.remove(call);
}

void CallsInTransit::Leave(const std::string& connection) {
  const auto found = connections_.find(connection);
  CHECK(found != connections_.end());
  Connection& left = found->second;
  if (!left.queue.empty()) {
    // Its place goes to the next one.
    Event* const next = left.queue.front();
    left.queue.pop_front();
    next->Run(true);
  } else if (--left.calls == 0) {
    connections_.erase(found);
  }
}

}  // namespace pando
