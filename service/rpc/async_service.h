#ifndef PANDO_SERVICE_RPC_ASYNC_SERVICE_H_
#define PANDO_SERVICE_RPC_ASYNC_SERVICE_H_

#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/async_stream.h>

#include <functional>
#include <string>

#include "base/check.h"

namespace pando {

// A call on the wire, of a method of any kind. Its messages are read as bytes,
// when its owner asks for them.
template <typename Response>
using AsyncCall = grpc::ServerAsyncReaderWriter<Response, grpc::ByteBuffer>;

// Asks gRPC for the next call of one method, with `tag`.
using ArmCall = std::function<void(
    grpc::ServerContext*, grpc::internal::ServerAsyncStreamingInterface* call,
    grpc::ServerCompletionQueue*, void* tag)>;

// A generated service that reads nothing of a request by itself, so that a call
// can wait unread, and be refused unparsed. On the wire its methods are what
// the proto file says. To gRPC's server each method is a stream in both
// directions, because gRPC reads the request of any other kind by itself. For
// example AsyncService<v1::Admin>. Owned by the object that handles its calls;
// lives on the polling thread.
template <typename Generated>
class AsyncService final : public Generated::Service {
 public:
  AsyncService() {
    for (int i = 0; i < Descriptor().method_count(); ++i) {
      this->MarkMethodStreamed(i, nullptr);
      this->MarkMethodAsync(i);
    }
  }

  // Returns what asks for the next call of the method `name`. REQUIRES: the
  // service has such a method.
  ArmCall Method(const std::string& name) {
    const auto* const method = Descriptor().FindMethodByName(name);
    CHECK(method != nullptr);
    // gRPC numbers the methods as they are declared.
    return [this, index = method->index()](
               grpc::ServerContext* context,
               grpc::internal::ServerAsyncStreamingInterface* call,
               grpc::ServerCompletionQueue* queue, void* tag) {
      this->RequestAsyncBidiStreaming(index, context, call, queue, queue, tag);
    };
  }

 private:
  static const google::protobuf::ServiceDescriptor& Descriptor() {
    const auto* const service =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
            Generated::service_full_name());
    CHECK(service != nullptr);
    return *service;
  }
};

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_ASYNC_SERVICE_H_
