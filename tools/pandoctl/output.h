#ifndef PANDO_TOOLS_PANDOCTL_OUTPUT_H_
#define PANDO_TOOLS_PANDOCTL_OUTPUT_H_

#include <google/protobuf/message.h>

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace pando::ctl {

using Json = nlohmann::ordered_json;

// Converts a message as Protobuf's JSON mapping does: with all fields, by their
// names in the protos; 64-bit numbers are strings.
Json ToJson(const google::protobuf::Message& message);

// Where answers go, on stdout: as tables, which the verbs make, JSON or YAML.
class Output {
 public:
  // `format` is table, json or yaml.
  explicit Output(const std::string& format) : format_(format) {}

  bool is_table() const { return format_ == "table"; }

  // Prints text as it is.
  void Print(const std::string& text) const;
  // Prints the only answer, as JSON or YAML.
  void Print(const Json& value) const;
  void Print(const google::protobuf::Message& message) const;
  // Prints one of many answers: a line of JSON, or a YAML document.
  void PrintNext(const Json& value) const;

 private:
  const std::string format_;
};

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_OUTPUT_H_
