#ifndef PANDO_SERVICE_CONSOLE_EXPLAIN_JSON_H_
#define PANDO_SERVICE_CONSOLE_EXPLAIN_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "pando/v1/admin.pb.h"

namespace pando {

// Parses an ExplainMatchRequest from JSON, in which fields have their names. An
// unknown field, or more than `max_tokens` tokens, is an error. The body is
// parsed as a stream: the parser stops at the first thing that does not belong
// there, and allocates nothing for it, however deeply it is nested.
absl::StatusOr<v1::ExplainMatchRequest> ExplainRequestOf(
    const std::string& body, uint32_t max_tokens);

// Returns the response as JSON.
nlohmann::json ExplanationJson(const v1::ExplainMatchResponse& response);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_EXPLAIN_JSON_H_
