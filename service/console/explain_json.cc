#include "service/console/explain_json.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace pando {

namespace protobuf = google::protobuf::util;

namespace {

using nlohmann::json;

// Takes the values of {"namespace": {...}, "tokens": [...]} one by one. A
// member function that returns false ends the parsing.
class RequestReader final : public nlohmann::json_sax<json> {
 public:
  RequestReader(uint32_t max_tokens, v1::ExplainMatchRequest* request)
      : max_tokens_(max_tokens), request_(request) {}

  // Returns how many tokens were sent; those above the limit are only counted.
  uint64_t tokens() const { return tokens_; }

  bool start_object(size_t) override {
    if (place_ == Place::kOutside && !is_read_) return Enter(Place::kRequest);
    return place_ == Place::kRequest && key_ == "namespace" &&
           Enter(Place::kNamespace);
  }
  bool end_object() override {
    return Enter(place_ == Place::kNamespace ? Place::kRequest
                                             : Place::kOutside);
  }
  bool start_array(size_t) override {
    return place_ == Place::kRequest && key_ == "tokens" &&
           Enter(Place::kTokens);
  }
  bool end_array() override { return Enter(Place::kRequest); }
  bool key(std::string& key) override {
    key_ = key;
    return true;
  }

  bool number_unsigned(uint64_t token) override {
    if (place_ != Place::kTokens || token > UINT32_MAX) return false;
    if (++tokens_ <= max_tokens_) {
      request_->add_tokens(static_cast<uint32_t>(token));
    }
    return true;
  }
  bool string(std::string& text) override {
    if (place_ != Place::kNamespace) return false;
    if (key_ == "extra_key") {
      request_->mutable_namespace_()->set_extra_key(text);
    } else if (key_ == "cache_salt") {
      request_->mutable_namespace_()->set_cache_salt(text);
    } else {
      return false;
    }
    return true;
  }
  bool boolean(bool value) override {
    if (place_ != Place::kNamespace || key_ != "bigram") return false;
    request_->mutable_namespace_()->set_bigram(value);
    return true;
  }

  bool null() override { return false; }
  bool number_integer(int64_t) override { return false; }
  bool number_float(double, const std::string&) override { return false; }
  bool binary(json::binary_t&) override { return false; }
  bool parse_error(size_t, const std::string&,
                   const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  enum class Place { kOutside, kRequest, kNamespace, kTokens };

  bool Enter(Place place) {
    is_read_ = true;
    place_ = place;
    key_.clear();
    return true;
  }

  const uint32_t max_tokens_;
  v1::ExplainMatchRequest* const request_;
  Place place_ = Place::kOutside;
  bool is_read_ = false;
  uint64_t tokens_ = 0;
  std::string key_;
};

}  // namespace

absl::StatusOr<v1::ExplainMatchRequest> ExplainRequestOf(
    const std::string& body, uint32_t max_tokens) {
  v1::ExplainMatchRequest request;
  RequestReader reader(max_tokens, &request);
  if (!json::sax_parse(body, &reader)) {
    // The error does not repeat what was sent.
    return absl::InvalidArgumentError(
        "the body must be an ExplainMatchRequest as JSON, for example "
        R"({"namespace": {"extra_key": "a"}, "tokens": [1, 2]})");
  }
  if (reader.tokens() > max_tokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tokens has ", reader.tokens(), " entries; the limit is ", max_tokens));
  }
  return request;
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
