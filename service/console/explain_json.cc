#include "service/console/explain_json.h"

#include <google/protobuf/util/json_util.h>

#include "base/check.h"

namespace pando {

namespace protobuf = google::protobuf::util;

absl::StatusOr<v1::ExplainMatchRequest> ExplainRequestOf(
    const std::string& body) {
  v1::ExplainMatchRequest request;
  const auto parsed = protobuf::JsonStringToMessage(body, &request);
  if (parsed.ok()) return request;
  // protobuf's own sentence shows what was sent.
  return absl::InvalidArgumentError(
      "the body must be an ExplainMatchRequest as JSON, for example "
      R"({"namespace": {"extra_key": "a"}, "tokens": [1, 2]})");
}

nlohmann::json ExplanationJson(const v1::ExplainMatchResponse& response) {
  protobuf::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  CHECK(protobuf::MessageToJsonString(response, &text, options).ok());
  return nlohmann::json::parse(text);
}

}  // namespace pando
