#ifndef PANDO_SERVICE_CONSOLE_EXPLAIN_JSON_H_
#define PANDO_SERVICE_CONSOLE_EXPLAIN_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "pando/v1/admin.pb.h"

namespace pando {

// Parses the JSON form of the message: its fields by name, no others, and at
// most `max_tokens` tokens. It is parsed as a stream: anything else, however
// deeply nested, is refused where it begins, and takes no memory.
absl::StatusOr<v1::ExplainMatchRequest> ExplainRequestOf(
    const std::string& body, uint32_t max_tokens);

// The JSON form of the response.
nlohmann::json ExplanationJson(const v1::ExplainMatchResponse& response);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_EXPLAIN_JSON_H_
