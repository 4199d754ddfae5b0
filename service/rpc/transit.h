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

// The part of one call that CallsInTransit limits. It reads the request once
// there is room for the call. The call takes up that room until Leave: when the
// call is answered, or waits. A call that has waited takes up room again for
// its answer.
//
//   Begin ... room ... `then`(whether a request was read) ... Leave
//   Return ... room ... `then`(true) ... Leave
//
// Owned by the call, which must call CallIsOver when it is over on both sides,
// even before there is room. Lives on the polling thread. Once the server is
// stopping, Run does not call `then` any more; CallIsOver still does.
class Transit final : public Event {
 public:
  using Reader = grpc::internal::AsyncReaderInterface<grpc::ByteBuffer>;

  Transit(RpcServer* server, std::function<void(bool ok)> then)
      : server_(server), then_(std::move(then)) {}

  // Begins when the call has arrived. The arguments live until `then` is
  // called.
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

  // The name that gRPC had for the connection when the call arrived. Later gRPC
  // may have forgotten it.
  const std::string& connection() const { return connection_; }

  // Asks for room for a call that has waited. Returns whether the call has room
  // now. If not, `then` is called once it has.
  bool Return() {
    if (stage_ == Stage::kOutside) {
      // The call goes first, because most of its work is done.
      stage_ = server_->calls_in_transit().Enter(connection_, this,
                                                 /*is_first=*/true)
                   ? Stage::kInside
                   : Stage::kReturning;
    }
    return stage_ == Stage::kInside;
  }

  // To be called when the call is over on both sides: it waits for room no
  // longer. If its request was not read yet, it never will be, and
  // `then`(false) is called.
  void CallIsOver() {
    const bool was_unread = stage_ == Stage::kQueued;
    if (!was_unread && stage_ != Stage::kReturning) return;
    server_->calls_in_transit().Withdraw(connection_, this);
    stage_ = Stage::kOutside;
    if (was_unread) then_(false);
  }

  // Gives the room back. Has no effect if the call has no room.
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
