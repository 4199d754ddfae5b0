#ifndef PANDO_SERVICE_RPC_TRANSIT_H_
#define PANDO_SERVICE_RPC_TRANSIT_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/async_stream.h>

#include <functional>
#include <string>
#include <utility>

#include "service/rpc/event.h"
#include "service/rpc/rpc_server.h"

namespace pando {

// The part of one call that is bounded by CallsInTransit. Reads the request
// once there is room for it, and takes up that room until Leave.
//
//   Begin ... room ... `then`(whether a request was read) ... Leave
//
// Owned by the call, which says when it is over on both sides: it may be so
// before there is room. Lives on the polling thread. A server that stops calls
// `then` no more.
class Transit final : public Event {
 public:
  using Reader = grpc::internal::AsyncReaderInterface<grpc::ByteBuffer>;

  Transit(RpcServer* server, std::function<void(bool ok)> then)
      : server_(server), then_(std::move(then)) {}

  // The call has arrived. All that is given lives until `then` is called.
  void Begin(const grpc::ServerContext& call, Reader* reader,
             grpc::ByteBuffer* request) {
    connection_ = call.peer();
    reader_ = reader;
    request_ = request;
    stage_ = Stage::kQueued;
    if (server_->calls_in_transit().Enter(connection_, this)) Run(true);
  }

  // The call is over: one whose request is not being read yet waits no longer
  // for it.
  void CallIsOver() {
    if (stage_ != Stage::kQueued) return;
    server_->calls_in_transit().Withdraw(connection_, this);
    stage_ = Stage::kOver;
    then_(false);
  }

  // Does nothing if it was called before, or if nothing was to be read.
  void Leave() {
    if (stage_ != Stage::kRead) return;
    stage_ = Stage::kOver;
    server_->calls_in_transit().Leave(connection_);
  }

  void Run(bool ok) override {
    if (server_->is_stopping()) return;
    if (stage_ == Stage::kQueued) {
      stage_ = Stage::kReading;
      reader_->Read(request_, this);
    } else {
      stage_ = Stage::kRead;
      then_(ok);
    }
  }

 private:
  enum class Stage { kQueued, kReading, kRead, kOver };

  RpcServer* const server_;
  const std::function<void(bool ok)> then_;
  std::string connection_;
  Reader* reader_ = nullptr;
  grpc::ByteBuffer* request_ = nullptr;
  Stage stage_ = Stage::kOver;
};

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_TRANSIT_H_
