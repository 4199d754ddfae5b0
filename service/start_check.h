#ifndef PANDO_SERVICE_START_CHECK_H_
#define PANDO_SERVICE_START_CHECK_H_

#include "absl/status/status.h"
#include "service/options/options.h"

namespace pando {

// Looks for what a start with these options needs on this machine: folders,
// files, the group, memory and room on disks. Changes nothing, so that it may
// run beside a pandod that serves. It asks neither GPUs nor the servers of a
// shared tier, and takes no address.
absl::Status CheckStart(const Options& options);

// Checks of an open pool's tiers what does not depend on its layout. The rest
// is checked once an engine has stated the layout.
absl::Status CheckTiersOfOpenPool(const Options& options);

}  // namespace pando

#endif  // PANDO_SERVICE_START_CHECK_H_
