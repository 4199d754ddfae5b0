// Converts gRPC's statuses to those of this library.
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

// Converts a status of gRPC: its code and message, and the reason from the
// google.rpc.ErrorInfo that the server attached.
absl::Status FromGrpc(const grpc::Status& status);

// Does the same for a google.rpc.Status, in which a lane or a batch reports an
// error.
absl::Status FromStatusMessage(std::span<const std::byte> message);
absl::Status FromStatusMessage(const google::rpc::Status& status);

// Attaches the reason that ReasonOf returns.
absl::Status WithReason(absl::Status status, std::string_view reason);

// Returns whether the call failed because the connection broke, or because the
// server ended and cancelled it, and not because the server refused it.
bool IsUnanswered(const absl::Status& status);

// Returns whether the call failed without an answer, so that the server may
// have acted on it.
bool MayHaveActed(const absl::Status& status);

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_STATUS_H_
