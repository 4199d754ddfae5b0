#ifndef PANDO_TESTS_CORE_REFERENCE_FLIGHTS_H_
#define PANDO_TESTS_CORE_REFERENCE_FLIGHTS_H_

#include <utility>
#include <vector>

#include "base/ids.h"
#include "core/requests/requests.h"
#include "tests/core/reference_index.h"

namespace pando {

// Who computes which page, and who waits for it: two lists, searched from end
// to end.
class ReferenceFlights {
 public:
  struct Mark {
    LockId owner;
    Place page;       // its prefix ends with the page that is computed
    PageId reserved;  // what it is computed into; 0 when that is not known
  };
  using Over = std::pair<WaitId, PendingOutcome>;

  const std::vector<Mark>& marks() const { return marks_; }
  size_t waiting() const { return waits_.size(); }
  bool IsWaiting(WaitId id) const;
  bool IsMarked(const Place& page) const;
  // The page that `owner` computes; null when none.
  const Mark* FindMark(LockId owner) const;

  // The newest that computes into `reserved`; null when none.
  const Mark* FindMarkOf(PageId reserved) const;

  // Does nothing when another computes the page already.
  void AddMark(Mark mark);
  void AddWait(WaitId id, SessionId session, Place page) {
    waits_.push_back({id, session, std::move(page)});
  }
  bool CancelWait(WaitId id);
  // The session that waits has ended. Returns how many waits it had.
  size_t EndWaitsOf(SessionId session);
  // The owner computes it no more, and calls wait for it no more. Returns how
  // many waited.
  size_t Resolve(LockId owner, PendingOutcome outcome);

  // The waits that are over since the last call, in order of arrival.
  std::vector<Over> TakeOver() { return std::exchange(over_, {}); }

 private:
  struct Wait {
    WaitId id;
    SessionId session;
    Place page;
  };
  std::vector<Mark> marks_;
  std::vector<Wait> waits_;  // in order of arrival
  std::vector<Over> over_;
};

}  // namespace pando

#endif  // PANDO_TESTS_CORE_REFERENCE_FLIGHTS_H_
