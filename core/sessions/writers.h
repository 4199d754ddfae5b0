#ifndef PANDO_CORE_SESSIONS_WRITERS_H_
#define PANDO_CORE_SESSIONS_WRITERS_H_

#include <algorithm>
#include <vector>

#include "base/ids.h"

namespace pando {

// The writers of a session: the processes that mapped the pool for it, and so
// may write to its reserved pages. It is a part of a Session and, once that is
// lost, of its batch in Quarantine. Not thread-safe.
class Writers {
 public:
  // Adds a writer whose end will be reported by Remove. Idempotent.
  void Add(WriterId writer);
  // Adds a writer that cannot be watched: its end will not be reported.
  void AddUnwatched();
  // Adds a writer that is known to be gone.
  void AddGone() { has_mapped_ = true; }
  // Notes that a writer is gone.
  void Remove(WriterId writer);
  bool Contains(WriterId writer) const {
    return std::ranges::find(living_, writer) != living_.end();
  }

  // The watched writers that are not gone yet.
  const std::vector<WriterId>& living() const { return living_; }
  bool has_unwatched() const { return has_unwatched_; }
  // Whether there ever was a writer.
  bool has_mapped() const { return has_mapped_; }
  bool MayWrite() const { return !living_.empty() || has_unwatched_; }
  // Whether there were writers and all of them are known to be gone.
  bool AreGone() const { return has_mapped_ && !MayWrite(); }

 private:
  std::vector<WriterId> living_;
  bool has_unwatched_ = false;
  bool has_mapped_ = false;
};

}  // namespace pando

#endif  // PANDO_CORE_SESSIONS_WRITERS_H_
