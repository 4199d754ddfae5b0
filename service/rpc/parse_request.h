#ifndef PANDO_SERVICE_RPC_PARSE_REQUEST_H_
#define PANDO_SERVICE_RPC_PARSE_REQUEST_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "service/calls/request_parts.h"

namespace pando {

// Parses the bytes of a request into `request`, which must be empty, and
// releases the bytes. Returns INVALID_FIELD if the request has too many parts,
// and INTERNAL if the bytes are no such message.
template <typename Request>
absl::Status ParseRequest(grpc::ByteBuffer& bytes, Request& request) {
  grpc::ByteBuffer taken;
  taken.Swap(&bytes);
  {
    grpc::ByteBuffer same = taken;  // shares what it holds
    grpc::ProtoBufferReader reader(&same);
    RETURN_IF_ERROR(CheckRequestParts(reader, *Request::descriptor()));
  }
  if (taken.Valid()) {
    grpc::ProtoBufferReader reader(&taken);
    if (reader.status().ok() && request.ParseFromZeroCopyStream(&reader)) {
      return absl::OkStatus();
    }
  }
  return absl::InternalError("the request cannot be parsed");
}

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_PARSE_REQUEST_H_
