#ifndef PANDO_SERVICE_OPTIONS_OPTION_CHECKS_H_
#define PANDO_SERVICE_OPTIONS_OPTION_CHECKS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "service/options/options.h"

namespace pando {

// Sets the options whose defaults depend on others, and checks that the options
// agree with each other.
absl::Status CompleteOptions(Options& options);

// Returns whether any tier keeps copies of pages.
bool HasTiers(const Options& options);

// Checks the options that count pages against pool_pages, which must be known.
absl::Status CheckPages(const Options& options);
// Checks the floors and caps of block_quotas against the sizes of the block
// memory; if pandod is still to choose its size, the caps alone.
absl::Status CheckBlockQuotas(const Options& options);

// Sets pool_pages to the number of pages that fit into `bytes` of each shard,
// and checks the options that depend on it. `size` names the option that gave
// the bytes; it is for error messages.
absl::Status SetPoolPages(std::string_view size, uint64_t bytes,
                          Options& options);

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_OPTION_CHECKS_H_
