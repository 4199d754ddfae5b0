#include "tests/core/reference_flights.h"

#include <algorithm>

namespace pando {

bool ReferenceFlights::IsWaiting(WaitId id) const {
  return std::any_of(waits_.begin(), waits_.end(),
                     [&](const auto& wait) { return wait.id == id; });
}

bool ReferenceFlights::IsMarked(const Place& page) const {
  return std::any_of(marks_.begin(), marks_.end(),
                     [&](const Mark& mark) { return mark.page == page; });
}

const ReferenceFlights::Mark* ReferenceFlights::FindMark(LockId owner) const {
  const auto it =
      std::find_if(marks_.begin(), marks_.end(),
                   [&](const Mark& mark) { return mark.owner == owner; });
  return it == marks_.end() ? nullptr : &*it;
}

const ReferenceFlights::Mark* ReferenceFlights::FindMarkOf(
    PageId reserved) const {
  const auto it =
      std::find_if(marks_.begin(), marks_.end(),
                   [&](const Mark& mark) { return mark.reserved == reserved; });
  return it == marks_.end() ? nullptr : &*it;
}

void ReferenceFlights::AddMark(Mark mark) {
  if (!IsMarked(mark.page)) marks_.push_back(std::move(mark));
}

bool ReferenceFlights::CancelWait(WaitId id) {
  return std::erase_if(waits_,
                       [&](const auto& wait) { return wait.id == id; }) > 0;
}

size_t ReferenceFlights::EndWaitsOf(SessionId session) {
  return std::erase_if(waits_, [&](const Wait& wait) {
    const bool is_over = wait.session == session;
    if (is_over) over_.emplace_back(wait.id, PendingOutcome::kOwnerLost);
    return is_over;
  });
}

size_t ReferenceFlights::Resolve(LockId owner, PendingOutcome outcome) {
  const Mark* mark = FindMark(owner);
  if (mark == nullptr) return 0;
  const size_t ended = std::erase_if(waits_, [&](const Wait& wait) {
    const bool is_over = wait.page == mark->page;
    if (is_over) over_.emplace_back(wait.id, outcome);
    return is_over;
  });
  std::erase_if(marks_, [&](const Mark& m) { return m.owner == owner; });
  return ended;
}

}  // namespace pando
