#ifndef PANDO_SERVICE_CONSOLE_CONSOLE_QUERY_H_
#define PANDO_SERVICE_CONSOLE_CONSOLE_QUERY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace pando {

struct NumberField {
  std::string name;
  uint32_t standard;  // when it is not given
  uint32_t min;
  uint32_t max;
};

// A number of a query; an error names the field, its value and what it may be.
absl::StatusOr<uint32_t> NumberIn(const std::string& query,
                                  const NumberField& field);

// A text of a query of at most 256 bytes; `standard` when it is not given.
absl::StatusOr<std::string> TextIn(const std::string& query,
                                   const std::string& name,
                                   const std::string& standard);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_CONSOLE_QUERY_H_
