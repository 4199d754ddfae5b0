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
// once there is room for it, and takes up that room until Leave: when the call
// is answered, or waits. One that has waited takes up room again for its
// answer.
//
//   Begin ... room ... `then`(whether a request was read) ... Leave
//   Return ... room ... `then`(true) ... Leave
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
    if (server_->calls_in_transit().Enter(connection_, this,
                                          /*is_first=*/false)) {
      Run(true);
    }
  }

  // The name that gRPC had for the connection when the call arrived; later it
  // may have forgotten it.
  const std::string& connection() const { return connection_; }

  // Whether the call has room. Otherwise `then` is called once it has.
  bool Return() {
    if (stage_ == Stage::kOutside) {
      // It has been served for the most part.
      stage_ = server_->calls_in_transit().Enter(connection_, this,
                                                 /*is_first=*/true)
                   ? Stage::kInside
                   : Stage::kReturning;
    }
    return stage_ == Stage::kInside;
  }

  // The call is over on both sides, and waits for room no longer. If it was not
  // read yet, it never will be.
  void CallIsOver() {
    const bool was_unread = stage_ == Stage::kQueued;
    if (!was_unread && stage_ != Stage::kReturning) return;
    server_->calls_in_transit().Withdraw(connection_, this);
    stage_ = Stage::kOutside;
    if (was_unread) then_(false);
  }

  // Does nothing if it was called before, or if nothing was to be read.
  void Leave() {
    if (stage_ != Stage::kInside) return;
    stage_ = Stage::kOutside;
    server_->calls_in_transit().Leave(connection_);
  }

  void Run(bool ok) override {
    if (server_->is_stopping()) return;
    if (stage_ == Stage::kQueued) {
      stage_ = Stage::kReading;
      reader_->Read(request_, this);
    } else {
      stage_ = Stage::kInside;
      then_(ok);
    }
  }

 private:
  enum class Stage { kOutside, kQueued, kReading, kInside, kReturning };

  RpcServer* const server_;
  const std::function<void(bool ok)> then_;
  std::string connection_;
  Reader* reader_ = nullptr;
  grpc::ByteBuffer* request_ = nullptr;
  Stage stage_ = Stage::kOutside;
};

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_TRANSIT_H_
