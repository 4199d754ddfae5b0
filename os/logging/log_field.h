#ifndef PANDO_OS_LOGGING_LOG_FIELD_H_
#define PANDO_OS_LOGGING_LOG_FIELD_H_

#include <concepts>
#include <cstdint>
#include <string>
#include <variant>

#include "absl/strings/string_view.h"

namespace pando {

// A name and a value that an event of the log carries beside its words.
struct LogField {
  template <std::signed_integral T>
  LogField(absl::string_view field, T number)
      : name(field), value(int64_t{number}) {}
  template <std::unsigned_integral T>
  LogField(absl::string_view field, T number)
      : name(field), value(uint64_t{number}) {}
  // A text of any kind.
  template <typename T>
  requires std::constructible_from<std::string, const T&> LogField(
      absl::string_view field, const T& text)
      : name(field), value(std::string(text)) {}

  absl::string_view name;
  std::variant<int64_t, uint64_t, std::string> value;
};

}  // namespace pando

#endif  // PANDO_OS_LOGGING_LOG_FIELD_H_
