#include "service/options/option_kinds.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <optional>
#include <regex>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace pando::option {
namespace {

absl::Status BadValue(const std::string& name, const std::string& text,
                      const std::string& limit) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is '%s'; must be %s", name, text, limit));
}

// Returns the shortest text that is read as the same number.
std::string ShortestText(double value) {
  char text[32];
  const std::to_chars_result end =
      std::to_chars(std::begin(text), std::end(text), value);
  return std::string(text, end.ptr);
}

}  // namespace

std::optional<uint64_t> ParseSize(std::string text) {
  try {
    if (!CLI::AsSizeValue(true)(text).empty()) return std::nullopt;
  } catch (const CLI::Error&) {
    return std::nullopt;
  }
  uint64_t bytes = 0;
  if (!absl::SimpleAtoi(text, &bytes)) return std::nullopt;
  return bytes;
}

OptionSpec Text(std::string name, std::string Options::*field,
                std::string value_name, std::string help) {
  return {name, value_name, help,
          [field](const std::string& text, Options& options) {
            options.*field = text;
            return absl::OkStatus();
          },
          [field](const Options& options) { return options.*field; }};
}

OptionSpec Choice(std::string name, std::string Options::*field,
                  std::vector<std::string> choices, std::string help) {
  return {name, absl::StrJoin(choices, "|"), help,
          [=](const std::string& text, Options& options) {
            for (const std::string& choice : choices) {
              if (text == choice) {
                options.*field = text;
                return absl::OkStatus();
              }
            }
            return BadValue(name, text,
                            "one of " + absl::StrJoin(choices, ", "));
          },
          [field](const Options& options) { return options.*field; }};
}

OptionSpec Number(std::string name, uint32_t Options::*field, uint32_t min,
                  uint32_t max, std::string help) {
  return {name, "N", help,
          [=](const std::string& text, Options& options) {
            uint32_t value = 0;
            if (!absl::SimpleAtoi(text, &value) || value < min || value > max) {
              return BadValue(
                  name, text,
                  absl::StrFormat("a whole number from %u to %u", min, max));
            }
            options.*field = value;
            return absl::OkStatus();
          },
          [field](const Options& options) {
            return absl::StrFormat("%u", options.*field);
          }};
}

OptionSpec Bytes(std::string name, uint64_t Options::*field, std::string help) {
  return {name, "SIZE", help,
          [=](const std::string& text, Options& options) {
            const std::optional<uint64_t> value = ParseSize(text);
            if (!value || *value == 0) {
              return BadValue(name, text, "a size such as 512MiB or 2GiB");
            }
            options.*field = *value;
            return absl::OkStatus();
          },
          [field](const Options& options) {
            return options.*field == 0 ? ""
                                       : absl::StrFormat("%u", options.*field);
          }};
}

OptionSpec Fraction(std::string name, double Options::*field,
                    std::string help) {
  return {
      name, "SHARE", help,
      [=](const std::string& text, Options& options) {
        double value = 0;
        if (!absl::SimpleAtod(text, &value) || !(value >= 0 && value <= 1)) {
          return BadValue(name, text, "a number from 0 to 1");
        }
        options.*field = value;
        return absl::OkStatus();
      },
      [field](const Options& options) { return ShortestText(options.*field); }};
}

OptionSpec Switch(std::string name, bool Options::*field, std::string help) {
  return {name, "yes|no", help,
          [=](const std::string& text, Options& options) {
            if (text != "yes" && text != "no") {
              return BadValue(name, text, "yes or no");
            }
            options.*field = text == "yes";
            return absl::OkStatus();
          },
          [field](const Options& options) {
            return std::string(options.*field ? "yes" : "no");
          }};
}

OptionSpec List(std::string name, std::vector<std::string> Options::*field,
                std::string value_name, std::string help) {
  return {name, value_name, help,
          [field](const std::string& text, Options& options) {
            options.*field = absl::StrSplit(text, ',', absl::SkipEmpty());
            return absl::OkStatus();
          },
          [field](const Options& options) {
            return absl::StrJoin(options.*field, ",");
          }};
}

OptionSpec Numbers(std::string name, std::vector<uint32_t> Options::*field,
                   std::string help) {
  return {name, "LIST", help,
          [=](const std::string& text, Options& options) {
            options.*field = {};
            if (text.empty()) return absl::OkStatus();
            for (const absl::string_view part : absl::StrSplit(text, ',')) {
              uint32_t& value = (options.*field).emplace_back();
              if (!absl::SimpleAtoi(part, &value)) {
                return BadValue(name, text,
                                "whole numbers with commas between");
              }
            }
            return absl::OkStatus();
          },
          [field](const Options& options) {
            return absl::StrJoin(options.*field, ",");
          }};
}

OptionSpec Mode(std::string name, mode_t Options::*field, std::string help) {
  return {name, "MODE", help,
          [=](const std::string& text, Options& options) {
            static const std::regex form("0?[0-7]{3}");
            constexpr size_t kMaxMode = 4;  // a match is as deep as the text
            if (text.size() > kMaxMode || !std::regex_match(text, form)) {
              return BadValue(name, text, "octal, from 000 to 777");
            }
            options.*field = static_cast<mode_t>(std::stoul(text, nullptr, 8));
            return absl::OkStatus();
          },
          [field](const Options& options) {
            return absl::StrFormat("0%o", options.*field);
          }};
}

OptionSpec Time(std::string name, absl::Duration Options::*field,
                absl::Duration min, absl::Duration max, std::string help) {
  return {
      name, "DURATION", help,
      [=](const std::string& text, Options& options) {
        absl::Duration value;
        if (!absl::ParseDuration(text, &value) || value < min || value > max) {
          return BadValue(name, text,
                          absl::StrFormat("a duration with unit from %s to %s",
                                          absl::FormatDuration(min),
                                          absl::FormatDuration(max)));
        }
        options.*field = value;
        return absl::OkStatus();
      },
      [field](const Options& options) {
        return absl::FormatDuration(options.*field);
      }};
}

OptionSpec Live(OptionSpec spec) {
  spec.is_live = true;
  return spec;
}

}  // namespace pando::option
