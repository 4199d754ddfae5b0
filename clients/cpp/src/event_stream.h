#ifndef PANDO_CLIENTS_CPP_SRC_EVENT_STREAM_H_
#define PANDO_CLIENTS_CPP_SRC_EVENT_STREAM_H_

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "pando/v1/session.grpc.pb.h"

namespace pando {
inline namespace client {

// One run of Sessions.Open, from its first message to its status.
//
// It has a completion queue of its own. Once the session is open, the queue is
// polled and never waited in: a thread that waits in a queue becomes gRPC's
// poller for the whole process, receives the answers of all other calls and has
// to wake their threads.
//
// Owned and used by the thread of SessionStream. After Open, Close must be
// called.
class EventStream {
 public:
  // `token` as in ConnectOptions. `stopping` ends a wait early.
  EventStream(v1::Sessions::Stub& stub, const std::string& token,
              std::function<bool()> stopping);
  ~EventStream();

  // Sends the request and waits for the answer, at most for `timeout`. Returns
  // false if no session was opened; Close then returns why. Unless
  // `waits_for_server` is set, a missing server is an error at once.
  bool Open(const v1::OpenSessionRequest& request, absl::Duration timeout,
            bool waits_for_server, v1::SessionOpened* opened);

  // Handles what has arrived, without waiting. Returns false if the stream is
  // broken.
  bool Poll();

  // Ends the stream, if it is not broken already, and returns its status.
  // `half_close` lets the server end the session; it has a second to do so.
  absl::Status Close(bool half_close);

 private:
  using Clock = std::chrono::steady_clock;

  // The steps that gRPC reports; each is under way at most once.
  enum Step : uintptr_t { kStart, kWrite, kRead, kHalfClose, kFinish, kSteps };
  enum class State { kIdle, kPending, kDone, kFailed };

  void* Begin(Step step);
  // Handles the next step that has completed. Waits at most `wait` for it;
  // returns false if none has completed.
  bool HandleNext(absl::Duration wait);
  // Waits for a step. Returns whether it succeeded.
  bool Await(Step step, Clock::time_point deadline);
  void FinishPending();
  bool Any(State state) const;

  const std::function<bool()> stopping_;
  v1::Sessions::Stub& stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  State states_[kSteps] = {};
  v1::SessionEvent event_;
  std::unique_ptr<
      grpc::ClientAsyncReaderWriter<v1::OpenSessionRequest, v1::SessionEvent>>
      stream_;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_EVENT_STREAM_H_
