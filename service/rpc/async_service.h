#ifndef PANDO_SERVICE_RPC_ASYNC_SERVICE_H_
#define PANDO_SERVICE_RPC_ASYNC_SERVICE_H_

#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>

#include "base/check.h"

namespace pando {

// A generated service whose requests arrive as unparsed bytes, so that a call
// can be refused before it is parsed. For example AsyncService<v1::Admin>.
// Owned by the object that handles its calls; lives on the polling thread.
template <typename Generated>
class AsyncService final : public Generated::AsyncService {
 public:
  // Asks gRPC for the next call of one method, with `tag`. The responder, or
  // stream, is one of gRPC's and fits the method.
  template <typename Responder>
  using Arm = std::function<void(grpc::ServerContext*, grpc::ByteBuffer*,
                                 Responder*, grpc::CompletionQueue*,
                                 grpc::ServerCompletionQueue*, void* tag)>;

  template <typename Response>
  Arm<grpc::ServerAsyncResponseWriter<Response>> Unary(
      const std::string& method) {
    return [this, index = IndexOf(method)](auto... call) {
      this->RequestAsyncUnary(index, call...);
    };
  }
  template <typename Response>
  Arm<grpc::ServerAsyncWriter<Response>> ServerStream(
      const std::string& method) {
    return [this, index = IndexOf(method)](auto... call) {
      this->RequestAsyncServerStreaming(index, call...);
    };
  }
  // Asks gRPC for the next call of a method whose messages are read as bytes,
  // one after the other.
  template <typename Response>
  void RequestBidiStream(
      const std::string& method, grpc::ServerContext* context,
      grpc::ServerAsyncReaderWriter<Response, grpc::ByteBuffer>* stream,
      grpc::ServerCompletionQueue* queue, void* tag) {
    this->RequestAsyncBidiStreaming(IndexOf(method), context, stream, queue,
                                    queue, tag);
  }

 private:
  // gRPC numbers the methods as they are declared.
  static int IndexOf(const std::string& method) {
    const auto* const service =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
            Generated::service_full_name());
    CHECK(service != nullptr);
    const auto* const descriptor = service->FindMethodByName(method);
    CHECK(descriptor != nullptr);
    return descriptor->index();
  }
};

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_ASYNC_SERVICE_H_
