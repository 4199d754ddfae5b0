#ifndef PANDO_SERVICE_OPTIONS_OPTION_CHECKS_H_
#define PANDO_SERVICE_OPTIONS_OPTION_CHECKS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "service/options/options.h"

namespace pando {

// Sets the options that depend on others, and checks those that must agree.
absl::Status CompleteOptions(Options& options);

// Whether copies of pages are kept outside the pool.
bool HasTiers(const Options& options);

// Checks the options that count pages against pool_pages, which must be known.
absl::Status CheckPages(const Options& options);

// Sets pool_pages to the number of pages that fit into `bytes` of each shard,
// and checks the options that depend on it. `size` names the option that gave
// the bytes, for errors.
absl::Status SetPoolPages(std::string_view size, uint64_t bytes,
                          Options& options);

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_OPTION_CHECKS_H_
