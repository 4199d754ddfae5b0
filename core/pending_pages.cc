#include "core/pending_pages.h"

#include <algorithm>

#include "base/check.h"

namespace pando {

PendingPage* PendingPages::Find(const Node& after,
                                std::span<const Token> tokens) const {
  const auto it = pages_.find(Place(&after, tokens));
  return it == pages_.end() ? nullptr : it->get();
}

void PendingPages::Add(LockRecord& owner, std::span<const Token> tokens,
                       Reservation reserved) {
  CHECK(owner.pending == nullptr);
  auto page = std::make_unique<PendingPage>(
      PendingPage{.owner = &owner,
                  .after = owner.node,
                  .tokens = {tokens.begin(), tokens.end()},
                  .reserved = reserved,
                  .waits = {}});
  owner.pending = page.get();
  if (reserved != Reservation()) by_reserved_[reserved] = page.get();
  const bool is_new = pages_.insert(std::move(page)).second;
  CHECK(is_new);
}

void PendingPages::Remove(PendingPage& page, PendingOutcome outcome) {
  for (WaitId wait : page.waits) {
    waits_.erase(wait);
    ended_.push_back({wait, outcome});
  }
  page.owner->pending = nullptr;
  by_reserved_.erase(page.reserved);
  pages_.erase(pages_.find(Place(page.after, page.tokens)));
}

PendingPage* PendingPages::FindReserved(Reservation reserved) const {
  const auto it = by_reserved_.find(reserved);
  return it == by_reserved_.end() ? nullptr : it->second;
}

WaitId PendingPages::Wait(PendingPage& page, SessionId session) {
  const WaitId wait(++last_wait_);
  waits_[wait] = {&page, session};
  page.waits.push_back(wait);
  return wait;
}

bool PendingPages::Cancel(WaitId wait) {
  const auto it = waits_.find(wait);
  if (it == waits_.end()) return false;
  std::erase(it->second.page->waits, wait);
  waits_.erase(it);
  return true;
}

size_t PendingPages::EndWaitsOf(SessionId session) {
  std::vector<WaitId> ended;
  for (const auto& [wait, record] : waits_) {
    if (record.session == session) ended.push_back(wait);
  }
  std::sort(ended.begin(), ended.end());
  for (WaitId wait : ended) {
    Cancel(wait);
    ended_.push_back({wait, PendingOutcome::kOwnerLost});
  }
  return ended.size();
}

void PendingPages::AppendViolations(
    std::vector<std::string>& violations) const {
  size_t waits = 0;
  for (const PagePtr& page : pages_) {
    waits += page->waits.size();
    if (page->owner->pending != page.get() ||
        page->owner->node != page->after) {
      violations.push_back("pending: a page is not its owner's next one");
    }
    for (WaitId wait : page->waits) {
      const auto it = waits_.find(wait);
      if (it == waits_.end() || it->second.page != page.get()) {
        violations.push_back("pending: a wait is not for its page");
      }
    }
  }
  if (waits != waits_.size()) {
    violations.push_back("pending: a wait is for no page");
  }
}

}  // namespace pando
