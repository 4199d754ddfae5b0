#ifndef PANDO_SERVICE_CONSOLE_CONSOLE_QUERY_H_
#define PANDO_SERVICE_CONSOLE_CONSOLE_QUERY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace pando {

// A number that a query may have.
struct NumberField {
  std::string name;
  uint32_t standard;  // the value when it is missing
  uint32_t min;
  uint32_t max;
};

// Reads a number from a query. Returns INVALID_ARGUMENT, with the field, its
// value and the allowed range, if the value is not in the range.
absl::StatusOr<uint32_t> NumberIn(const std::string& query,
                                  const NumberField& field);

// Reads a text from a query; returns `standard` if it is missing. Returns
// INVALID_ARGUMENT if it has more than 256 bytes.
absl::StatusOr<std::string> TextIn(const std::string& query,
                                   const std::string& name,
                                   const std::string& standard);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_CONSOLE_QUERY_H_
