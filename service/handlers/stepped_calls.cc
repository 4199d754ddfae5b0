#include "service/handlers/stepped_calls.h"

namespace pando {

std::unique_ptr<SteppedCalls::Work> SteppedCalls::Take(WaitingCall& call) {
  const auto it = under_way_.find(&call);
  if (it == under_way_.end()) return nullptr;
  std::unique_ptr<Work> work = std::move(it->second);
  under_way_.erase(it);
  return work;
}

void SteppedCalls::ResumeSoon(WaitingCall& call) {
  if (call.OnStep()) return;
  turns_.push_back(&call);
  next_step_->Request();
}

void SteppedCalls::TakeRest(std::unique_ptr<Work> work) {
  abandoned_.push_back(std::move(work));
  next_step_->Request();
}

void SteppedCalls::ResumeNext() {
  if (!abandoned_.empty()) {
    if (abandoned_.front()->Step() == Progress::kDone) abandoned_.pop_front();
  }
  if (!turns_.empty()) {
    WaitingCall* const call = turns_.front();
    turns_.pop_front();
    if (under_way_.contains(call)) call->Resume();
  }
  if (!abandoned_.empty() || !turns_.empty()) next_step_->Request();
}

}  // namespace pando
