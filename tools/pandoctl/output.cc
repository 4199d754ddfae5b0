#include "tools/pandoctl/output.h"

#include <google/protobuf/util/json_util.h>
#include <yaml-cpp/yaml.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/visible_text.h"

namespace pando::ctl {
namespace {

// Strings are quoted, so that none is read as a number or a truth value.
void EmitYaml(const Json& value, YAML::Emitter& yaml) {
  if (value.is_object()) {
    yaml << YAML::BeginMap;
    for (const auto& [key, field] : value.items()) {
      yaml << YAML::Key << key << YAML::Value;
      EmitYaml(field, yaml);
    }
    yaml << YAML::EndMap;
  } else if (value.is_array()) {
    yaml << YAML::BeginSeq;
    for (const Json& element : value) EmitYaml(element, yaml);
    yaml << YAML::EndSeq;
  } else if (value.is_string()) {
    yaml << YAML::DoubleQuoted << value.get<std::string>();
  } else {
    yaml << value.dump();
  }
}

std::string ToYaml(const Json& value) {
  YAML::Emitter yaml;
  EmitYaml(value, yaml);
  return yaml.c_str();
}

// In strings of JSON and YAML \u202e is the character itself. Control
// characters of ASCII are written so by both.
std::string Shown(const std::string& structured) {
  return VisibleText(structured, "\n");
}

}  // namespace

Json ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  // It fails only for messages of unknown types.
  (void)google::protobuf::util::MessageToJsonString(message, &text, options);
  return Json::parse(text);
}

void Output::Print(const std::string& text) const {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void Output::Print(const Json& value) const {
  Print(Shown(format_ == "yaml" ? ToYaml(value) : value.dump(2)) + '\n');
}

void Output::Print(const google::protobuf::Message& message) const {
  Print(ToJson(message));
}

void Output::PrintNext(const Json& value) const {
  Print(Shown(format_ == "yaml" ? "---\n" + ToYaml(value) : value.dump()) +
        '\n');
}

}  // namespace pando::ctl
