#ifndef PANDO_SERVICE_CONSOLE_EXPLAIN_JSON_H_
#define PANDO_SERVICE_CONSOLE_EXPLAIN_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "pando/v1/admin.pb.h"

namespace pando {

// The JSON form of the message, with the names of its fields; no other fields,
// and at most so many tokens. It is read as it comes: whatever else is sent,
// however deeply nested, is refused where it begins, and takes no memory.
absl::StatusOr<v1::ExplainMatchRequest> ExplainRequestOf(
    const std::string& body, uint32_t max_tokens);

// Likewise.
nlohmann::json ExplanationJson(const v1::ExplainMatchResponse& response);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_EXPLAIN_JSON_H_
