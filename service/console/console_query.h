#ifndef PANDO_SERVICE_CONSOLE_CONSOLE_QUERY_H_
#define PANDO_SERVICE_CONSOLE_CONSOLE_QUERY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace pando {

struct NumberField {
  std::string name;
  uint32_t standard;  // the value when it is missing
  uint32_t min;
  uint32_t max;
};

// Reads a number from a query. An error names the field, its value and the
// allowed range.
absl::StatusOr<uint32_t> NumberIn(const std::string& query,
                                  const NumberField& field);

// Reads a text of at most 256 bytes from a query; `standard` when it is
// missing.
absl::StatusOr<std::string> TextIn(const std::string& query,
                                   const std::string& name,
                                   const std::string& standard);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_CONSOLE_QUERY_H_
