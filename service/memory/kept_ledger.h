#ifndef PANDO_SERVICE_MEMORY_KEPT_LEDGER_H_
#define PANDO_SERVICE_MEMORY_KEPT_LEDGER_H_

#include "absl/status/statusor.h"
#include "core/requests/block_requests.h"
#include "os/keeping/kept_descriptors.h"
#include "os/shared_memory.h"

namespace pando {

// Memory for the ledger of blocks: that of the pandod before, if it tells of
// the block memory of these options, else new memory, which is kept from now
// on. A ledger with which pandods crash, or do not get as far as serving, again
// and again, is not used any more.
absl::StatusOr<SharedMemory> KeptLedger(const BlockOptions& blocks,
                                        KeptDescriptors& kept);

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_KEPT_LEDGER_H_
