#include "clients/cpp/src/event_stream.h"

#include <grpc/support/time.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "clients/cpp/src/access.h"
#include "clients/cpp/src/status.h"

namespace pando {
inline namespace client {
namespace {

// The time after which a wait notices that it should stop.
constexpr absl::Duration kSlice = absl::Milliseconds(20);
constexpr absl::Duration kHalfCloseLimit = absl::Seconds(1);

}  // namespace

EventStream::EventStream(v1::Sessions::Stub& stub, const std::string& token,
                         std::function<bool()> stopping)
    : stopping_(std::move(stopping)), stub_(stub) {
  ShowToken(token, context_);
}

EventStream::~EventStream() {
  queue_.Shutdown();
  void* tag;
  bool ok;
  while (queue_.Next(&tag, &ok)) {
  }
}

bool EventStream::Open(const v1::OpenSessionRequest& request,
                       absl::Duration timeout, bool waits_for_server,
                       v1::SessionOpened* opened) {
  const Clock::time_point deadline =
      Clock::now() + absl::ToChronoNanoseconds(timeout);
  context_.set_wait_for_ready(waits_for_server);
  stream_ = stub_.AsyncOpen(&context_, &queue_, Begin(kStart));
  if (!Await(kStart, deadline)) return false;
  stream_->Write(request, Begin(kWrite));
  if (!Await(kWrite, deadline)) return false;
  stream_->Read(&event_, Begin(kRead));
  if (!Await(kRead, deadline) || !event_.has_opened()) return false;
  *opened = std::move(*event_.mutable_opened());
  stream_->Read(&event_, Begin(kRead));
  return true;
}

bool EventStream::Poll() {
  while (HandleNext(absl::ZeroDuration())) {
    // Draining needs no handling: the server says so to each call, too.
    if (states_[kRead] == State::kDone) {
      stream_->Read(&event_, Begin(kRead));
    }
  }
  return states_[kRead] == State::kPending;
}

absl::Status EventStream::Close(bool half_close) {
  if (half_close && states_[kRead] == State::kPending) {
    stream_->WritesDone(Begin(kHalfClose));
    while (states_[kRead] == State::kPending && HandleNext(kHalfCloseLimit)) {
    }
  }
  // A stream with a failed step is over, and has a status of its own.
  if (!Any(State::kFailed)) context_.TryCancel();
  FinishPending();
  grpc::Status status;
  stream_->Finish(&status, Begin(kFinish));
  FinishPending();
  return FromGrpc(status);
}

void* EventStream::Begin(Step step) {
  states_[step] = State::kPending;
  return reinterpret_cast<void*>(step);
}

bool EventStream::HandleNext(absl::Duration wait) {
  void* tag;
  bool ok;
  if (queue_.AsyncNext(
          &tag, &ok,
          gpr_time_from_nanos(absl::ToInt64Nanoseconds(wait), GPR_TIMESPAN)) !=
      grpc::CompletionQueue::GOT_EVENT) {
    return false;
  }
  states_[reinterpret_cast<uintptr_t>(tag)] =
      ok ? State::kDone : State::kFailed;
  return true;
}

bool EventStream::Await(Step step, Clock::time_point deadline) {
  while (states_[step] == State::kPending && !stopping_() &&
         Clock::now() < deadline) {
    HandleNext(kSlice);
  }
  return states_[step] == State::kDone;
}

void EventStream::FinishPending() {
  while (Any(State::kPending)) HandleNext(absl::InfiniteDuration());
}

bool EventStream::Any(State state) const {
  return std::find(std::begin(states_), std::end(states_), state) !=
         std::end(states_);
}

}  // namespace client
}  // namespace pando
