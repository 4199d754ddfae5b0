#ifndef PANDO_SERVICE_START_CHECK_H_
#define PANDO_SERVICE_START_CHECK_H_

#include "absl/status/status.h"
#include "service/options/options.h"

namespace pando {

// Checks that this machine has what a start with these options needs: folders,
// files, the group, memory and room on disks. Changes nothing, so it may run
// while another pandod serves. It does not ask GPUs or the servers of a shared
// tier, and does not bind addresses.
absl::Status CheckStart(const Options& options);

// Checks those options of an open pool's tiers that do not depend on the
// layout. The others are checked once an engine has stated the layout.
absl::Status CheckTiersOfOpenPool(const Options& options);

}  // namespace pando

#endif  // PANDO_SERVICE_START_CHECK_H_
