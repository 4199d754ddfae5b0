#include "tiers/blocks/shared_blocks.h"

#include "os/logging/log.h"

namespace pando {

// A thread may store a block after its kind was erased. It is in being_put_
// before it checks that its kind is the newest. So it either sees that the kind
// was replaced, and stores nothing, or it is found here. It leaves being_put_
// only once it has erased the block, or, if it cannot, has begun another
// erasure.
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
