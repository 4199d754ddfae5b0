#include "tests/core/reference_flights.h"

#include <algorithm>

namespace pando {

bool ReferenceFlights::IsWaiting(WaitId id) const {
  return std::any_of(waits_.begin(), waits_.end(),
                     [&](const auto& wait) { return wait.first == id; });
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

void ReferenceFlights::AddMark(Mark mark) {
  if (!IsMarked(mark.page)) marks_.push_back(std::move(mark));
}

bool ReferenceFlights::CancelWait(WaitId id) {
  return std::erase_if(waits_,
                       [&](const auto& wait) { return wait.first == id; }) > 0;
}

void ReferenceFlights::Resolve(LockId owner, PendingOutcome outcome) {
  const Mark* mark = FindMark(owner);
  if (mark == nullptr) return;
  std::erase_if(waits_, [&](const auto& wait) {
    const bool is_over = wait.second == mark->page;
    if (is_over) over_.emplace_back(wait.first, outcome);
    return is_over;
  });
  std::erase_if(marks_, [&](const Mark& m) { return m.owner == owner; });
}

}  // namespace pando
