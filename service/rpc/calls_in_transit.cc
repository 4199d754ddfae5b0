#include "service/rpc/calls_in_transit.h"

#include "base/check.h"

namespace pando {

bool CallsInTransit::Enter(const std::string& connection, Event* call,
                           bool is_first) {
  Connection& entered = connections_[connection];
  if (entered.calls == kMaxOfConnection) {
    entered.queue.insert(is_first ? entered.queue.begin() : entered.queue.end(),
                         call);
    return false;
  }
  ++entered.calls;
  return true;
}

void CallsInTransit::Withdraw(const std::string& connection, Event* call) {
  if (ready_.remove(call) > 0) return Leave(connection);
  const auto found = connections_.find(connection);
  CHECK(found != connections_.end());
  found->second.queue.remove(call);
}

void CallsInTransit::Leave(const std::string& connection) {
  const auto found = connections_.find(connection);
  CHECK(found != connections_.end());
  Connection& left = found->second;
  if (!left.queue.empty()) {
    ready_.push_back(left.queue.front());
    left.queue.pop_front();
    next_->Request();
  } else if (--left.calls == 0) {
    connections_.erase(found);
  }
}

void CallsInTransit::RunNext() {
  if (ready_.empty()) return;
  Event* const call = ready_.front();
  ready_.pop_front();
  if (!ready_.empty()) next_->Request();
  call->Run(true);
}

}  // namespace pando
