#ifndef PANDO_SERVICE_OPTIONS_OPTION_CHECKS_H_
#define PANDO_SERVICE_OPTIONS_OPTION_CHECKS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "service/options/options.h"

namespace pando {

// Fills in what depends on other options, and checks what concerns several.
absl::Status CompleteOptions(Options& options);

// Whether what counts pages fits to pool_pages, which is known.
absl::Status CheckPages(const Options& options);

// Sets pool_pages to what fits into `bytes` for each shard, and checks what
// depends on it. `size` names what gave the bytes.
absl::Status SetPoolPages(std::string_view size, uint64_t bytes,
                          Options& options);

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_OPTION_CHECKS_H_
