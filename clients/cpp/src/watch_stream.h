#ifndef PANDO_CLIENTS_CPP_SRC_WATCH_STREAM_H_
#define PANDO_CLIENTS_CPP_SRC_WATCH_STREAM_H_

#include <grpcpp/client_context.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "clients/cpp/src/endpoint.h"
#include "pando/v1/events.grpc.pb.h"

namespace pando {
inline namespace client {

// One run of Events.Watch, in messages. The destructor cancels it.
//
// Owned by the caller. Read is for one thread at a time, Cancel for any.
class WatchStream {
 public:
  WatchStream(const Endpoint& endpoint, const v1::WatchRequest& request,
              absl::Time deadline = absl::InfiniteFuture());
  ~WatchStream();

  // Waits for the next message. Fails for ever once the stream is cancelled
  // (CANCELLED), broken (UNAVAILABLE) or over its deadline.
  absl::Status Read(v1::WatchResponse* response);
  void Cancel() { context_.TryCancel(); }

 private:
  const std::unique_ptr<v1::Events::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::WatchResponse>> reader_;
  // How the stream ended.
  absl::Status end_;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_WATCH_STREAM_H_
