#include "os/logging/log_line.h"

#include <algorithm>
#include <concepts>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace pando {
namespace {

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

bool IsPlain(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != '"' &&
           c != '\\' && c != '=';
  });
}

std::string ToText(const std::string& text) {
  return IsPlain(text) ? text : absl::StrCat("\"", absl::CEscape(text), "\"");
}

template <std::integral T>
std::string ToText(T number) {
  return absl::StrCat(number);
}

}  // namespace

std::string TextLine(const LogEvent& event) {
  std::string line =
      absl::StrCat(TimeText(event.time), " ", event.level, " ", event.words);
  for (const LogField& field : event.fields) {
    absl::StrAppend(
        &line, " ", field.name, "=",
        std::visit([](const auto& v) { return ToText(v); }, field.value));
  }
  return line;
}

std::string JsonLine(const LogEvent& event) {
  nlohmann::ordered_json line = {{"ts", TimeText(event.time)},
                                 {"level", event.level},
                                 {"msg", event.words}};
  for (const LogField& field : event.fields) {
    std::visit(
        [&](const auto& value) { line[std::string(field.name)] = value; },
        field.value);
  }
  // Bytes that are not UTF-8 are replaced: a log line never throws.
  return line.dump(-1, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace pando
