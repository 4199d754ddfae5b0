#ifndef PANDO_SERVICE_OPTIONS_OPTION_KINDS_H_
#define PANDO_SERVICE_OPTIONS_OPTION_KINDS_H_

// The kinds of values that options have. Each function makes an OptionSpec that
// parses such a value into a field of Options, and prints it. An error names
// the option, the value and what is allowed.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "service/options/option_table.h"
#include "service/options/options.h"

namespace pando::option {

OptionSpec Text(std::string name, std::string Options::*field,
                std::string value_name, std::string help);
OptionSpec Choice(std::string name, std::string Options::*field,
                  std::vector<std::string> choices, std::string help);
OptionSpec Number(std::string name, uint32_t Options::*field, uint32_t min,
                  uint32_t max, std::string help);
// A number of bytes, with a unit or without. It must not be 0.
// Returns the number of bytes that a text like "2GiB" or "1024" stands for, or
// none if it is no such text.
std::optional<uint64_t> ParseSize(std::string text);
OptionSpec Bytes(std::string name, uint64_t Options::*field, std::string help);
OptionSpec Fraction(std::string name, double Options::*field, std::string help);
OptionSpec Switch(std::string name, bool Options::*field, std::string help);
// A list of texts with commas between them.
OptionSpec List(std::string name, std::vector<std::string> Options::*field,
                std::string value_name, std::string help);
// A list of whole numbers with commas between them.
OptionSpec Numbers(std::string name, std::vector<uint32_t> Options::*field,
                   std::string help);
// The permissions of a file, in octal.
OptionSpec Mode(std::string name, mode_t Options::*field, std::string help);
OptionSpec Time(std::string name, absl::Duration Options::*field,
                absl::Duration min, absl::Duration max, std::string help);

// One value of an enum, from its first value up to `last`.
template <typename T>
OptionSpec Named(std::string name, T Options::*field, T last,
                 absl::StatusOr<T> (*parse)(std::string_view),
                 std::string_view (*print)(T), std::string help) {
  std::vector<std::string> choices;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    choices.emplace_back(print(static_cast<T>(i)));
  }
  return {name, absl::StrJoin(choices, "|"), help,
          [=](const std::string& text, Options& options) {
            absl::StatusOr<T> value = parse(text);
            if (value.ok()) options.*field = *value;
            return value.status();
          },
          [=](const Options& options) {
            return std::string(print(options.*field));
          }};
}

// Returns the same option, which a reload may change.
OptionSpec Live(OptionSpec spec);

}  // namespace pando::option

#endif  // PANDO_SERVICE_OPTIONS_OPTION_KINDS_H_
