#ifndef PANDO_SERVICE_MEMORY_KEPT_LEDGER_H_
#define PANDO_SERVICE_MEMORY_KEPT_LEDGER_H_

#include "absl/status/statusor.h"
#include "core/requests/block_requests.h"
#include "os/keeping/kept_descriptors.h"
#include "os/shared_memory.h"

namespace pando {

// Returns memory for the ledger of blocks. This is the kept ledger of the
// earlier pandod if it describes the block memory of these options; else it is
// new memory, which is kept from now on. A ledger is given up after three
// crashes of pandods within a minute of their start (a pandod that serves for a
// minute resets the count), or if three pandods in a row died before they
// served.
absl::StatusOr<SharedMemory> KeptLedger(const BlockOptions& blocks,
                                        KeptDescriptors& kept);

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_KEPT_LEDGER_H_
