#include "service/console/console_query.h"

#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "service/http/http_message.h"

namespace pando {
namespace {

constexpr size_t kMaxTextBytes = 256;

}  // namespace

absl::StatusOr<uint32_t> NumberIn(const std::string& query,
                                  const NumberField& field) {
  const std::optional<std::string> text = FormField(query, field.name);
  if (!text.has_value()) return field.standard;
  uint32_t value = 0;
  if (absl::SimpleAtoi(*text, &value) && value >= field.min &&
      value <= field.max) {
    return value;
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is '%s'; must be a whole number from %u to %u",
                      field.name, *text, field.min, field.max));
}

absl::StatusOr<std::string> TextIn(const std::string& query,
                                   const std::string& name,
                                   const std::string& standard) {
  const std::optional<std::string> text = FormField(query, name);
  if (!text.has_value()) return standard;
  if (text->size() <= kMaxTextBytes) return *text;
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s has %u bytes; the limit is %u", name, text->size(), kMaxTextBytes));
}

}  // namespace pando
