#ifndef PANDO_SERVICE_CONSOLE_EXPLAIN_JSON_H_
#define PANDO_SERVICE_CONSOLE_EXPLAIN_JSON_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "pando/v1/admin.pb.h"

namespace pando {

// The JSON form of the message, as protobuf defines it; no other fields.
absl::StatusOr<v1::ExplainMatchRequest> ExplainRequestOf(
    const std::string& body);

// Likewise, with the names of the fields as they are in the message.
nlohmann::json ExplanationJson(const v1::ExplainMatchResponse& response);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_EXPLAIN_JSON_H_
