#ifndef PANDO_TESTS_CORE_REFERENCE_FLIGHTS_H_
#define PANDO_TESTS_CORE_REFERENCE_FLIGHTS_H_

#include <utility>
#include <vector>

#include "base/ids.h"
#include "core/requests/requests.h"
#include "tests/core/reference_index.h"

namespace pando {

// A naive record of the pages that sessions compute and the calls that wait for
// them: two lists that are searched from end to end.
class ReferenceFlights {
 public:
  struct Mark {
    LockId owner;
    Place page;       // the prefix that ends with the computed page
    PageId reserved;  // the page it is computed into; 0 if unknown
  };
  using Over = std::pair<WaitId, PendingOutcome>;

  const std::vector<Mark>& marks() const { return marks_; }
  size_t waiting() const { return waits_.size(); }
  bool IsWaiting(WaitId id) const;
  bool IsMarked(const Place& page) const;
  // Returns the mark of the page that `owner` computes, or null if there is
  // none.
  const Mark* FindMark(LockId owner) const;

  // Returns the mark whose page is computed into `reserved`, or null if there
  // is none.
  const Mark* FindMarkOf(PageId reserved) const;

  // Adds a mark. Does nothing if the page has a mark already.
  void AddMark(Mark mark);
  void AddWait(WaitId id, SessionId session, Place page) {
    waits_.push_back({id, session, std::move(page)});
  }
  bool CancelWait(WaitId id);
  // Ends the waits of a session that has ended. Returns how many waits it had.
  size_t EndWaitsOf(SessionId session);
  // Ends the mark of `owner` and the waits for its page. Returns how many waits
  // ended.
  size_t Resolve(LockId owner, PendingOutcome outcome);

  // Returns the waits that ended since the last call, in order of arrival.
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
