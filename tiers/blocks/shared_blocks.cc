#include "tiers/blocks/shared_blocks.h"

#include "os/logging/log.h"

namespace pando {

bool SharedBlocks::Erase(const BlockName& name) {
  known_.Remove({&name, 1});
  const absl::Status erased = store_->Erase(KeyOf(name));
  if (erased.ok()) return true;
  Log(LogLevel::kError, "a shared block cannot be erased",
      {{"error", erased.message()}});
  return false;
}

}  // namespace pando
