#ifndef PANDO_CORE_WRITERS_H_
#define PANDO_CORE_WRITERS_H_

#include <vector>

#include "base/ids.h"

namespace pando {

// Who may write to the pages that a session has reserved: those who mapped the
// pool for it. Plain bookkeeping, part of a Session and, once that is lost, of
// its batch in Quarantine; not thread-safe.
class Writers {
 public:
  // One whose end will be told. Idempotent.
  void Add(WriterId writer);
  // One whose end nobody will tell.
  void AddUnwatched();
  void Remove(WriterId writer);

  // Those whose end has not been told.
  const std::vector<WriterId>& living() const { return living_; }
  bool has_unwatched() const { return has_unwatched_; }
  bool has_mapped() const { return has_mapped_; }
  bool MayWrite() const { return !living_.empty() || has_unwatched_; }
  // There were some, and all are known to be gone.
  bool AreGone() const { return has_mapped_ && !MayWrite(); }

 private:
  std::vector<WriterId> living_;
  bool has_unwatched_ = false;
  bool has_mapped_ = false;
};

}  // namespace pando

#endif  // PANDO_CORE_WRITERS_H_
