// Turns what gRPC says about a call into the statuses of this library.
#ifndef PANDO_CLIENTS_CPP_SRC_STATUS_H_
#define PANDO_CLIENTS_CPP_SRC_STATUS_H_

#include <cstddef>
#include <span>
#include <string_view>

#include "absl/status/status.h"

namespace google::rpc {
class Status;
}
namespace grpc {
class Status;
}

namespace pando {
inline namespace client {

// The same code and message, and the reason of the google.rpc.ErrorInfo that
// the server attached.
absl::Status FromGrpc(const grpc::Status& status);

// The same of a serialized google.rpc.Status, which a lane gives for an error.
absl::Status FromStatusMessage(std::span<const std::byte> message);
absl::Status FromStatusMessage(const google::rpc::Status& status);

// Makes ReasonOf(status) answer `reason`.
absl::Status WithReason(absl::Status status, std::string_view reason);

// No answer of the server came, as opposed to one that refuses the call: the
// connection broke, or the server ended and cancelled what it still had.
bool IsUnanswered(const absl::Status& status);

// The call failed without an answer, so that the server may have acted on it.
bool MayHaveActed(const absl::Status& status);

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_STATUS_H_
