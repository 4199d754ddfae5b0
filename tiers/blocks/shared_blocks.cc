#include "tiers/blocks/shared_blocks.h"

#include "os/logging/log.h"

namespace pando {

// A block that is stored after its kind was erased is found by this, too:
// either its thread sees that the kind was replaced, or it is among these.
bool SharedBlocks::MayHaveReplaced() const {
  if (eraser_.is_erasing()) return true;
  absl::MutexLock hold(&mutex_);
  return std::ranges::any_of(
      being_put_, [](const KnownKind* kind) { return !kind->is_newest; });
}

bool SharedBlocks::Erase(const BlockName& name) {
  known_.Remove({&name, 1});
  const absl::Status erased = store_->Erase(KeyOf(name));
  if (erased.ok()) return true;
  Log(LogLevel::kError, "a shared block cannot be erased",
      {{"error", erased.message()}});
  return false;
}

}  // namespace pando
