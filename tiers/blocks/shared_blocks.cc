#include "tiers/blocks/shared_blocks.h"

#include "os/logging/log.h"

namespace pando {

// A block that is stored after its kind was erased is found by this, too:
// either its thread sees that the kind was replaced, or it is among these.
bool SharedBlocks::MayHaveReplaced(const KnownKind& kind) const {
  const uint64_t name = kind.kind.name();
  if (eraser_.IsErasing(name)) return true;
  absl::MutexLock hold(&mutex_);
  return std::ranges::any_of(being_put_, [&](const KnownKind* put) {
    return !put->is_newest && put->kind.name() == name;
  });
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
