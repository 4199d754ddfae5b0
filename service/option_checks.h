#ifndef PANDO_SERVICE_OPTION_CHECKS_H_
#define PANDO_SERVICE_OPTION_CHECKS_H_

#include "absl/status/status.h"
#include "service/options.h"

namespace pando {

// Fills in what depends on other options, and checks what concerns several.
absl::Status CompleteOptions(Options& options);

}  // namespace pando

#endif  // PANDO_SERVICE_OPTION_CHECKS_H_
