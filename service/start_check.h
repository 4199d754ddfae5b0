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

// What can be said of the tiers of an open pool. The bytes of a page come with
// the layout, with which all is checked again.
absl::Status CheckTiersOfOpenPool(const Options& options);

}  // namespace pando

#endif  // PANDO_SERVICE_START_CHECK_H_
