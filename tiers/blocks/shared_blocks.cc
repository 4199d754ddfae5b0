#include "tiers/blocks/shared_blocks.h"

#include "os/logging/log.h"

namespace pando {

// A block that is stored after its kind was erased is found by this, too:
// either its thread sees that the kind was replaced, or it is among these. If
// it cannot erase the block, it begins another erasure before it goes from
// here.
bool SharedBlocks::MayHaveReplaced(const KnownKind& kind) const {
  const uint64_t name = kind.kind.name();
  {
    absl::MutexLock hold(&mutex_);
    for (const KnownKind* const put : being_put_) {
      if (!put->is_newest && put->kind.name() == name) return true;
    }
  }
  return eraser_.IsErasing(name);
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
