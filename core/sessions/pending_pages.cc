#include "core/sessions/pending_pages.h"

#include <algorithm>

#include "base/check.h"

namespace pando {

std::span<const Token> PendingPages::FirstPage(const Namespace& ns,
                                               std::span<const Token> tokens,
                                               uint32_t page_tokens) {
  const uint32_t lookahead = ns.lookahead();
  if (WholePages(lookahead, tokens.size(), page_tokens) == 0) return {};
  return tokens.first(SpelledTokens(lookahead, 1, page_tokens));
}

// The session that computes a page holds a lock that ends right before the
// page, so a node ends there. Inside a node, there is no pending page.
PendingPage* PendingPages::Find(const FoundPrefix& found,
                                const PrefixQuery& query) const {
  if (found.ns == nullptr || found.pages == found.max_pages ||
      found.position.is_inside_node()) {
    return nullptr;
  }
  const size_t next =
      size_t{found.pages} * tree_->page_tokens() - query.after.tokens;
  return Find(*found.position.node, query.tokens.subspan(next));
}

PendingPage* PendingPages::Find(const Node& after,
                                std::span<const Token> tokens) const {
  const auto it = pages_.find(
      Place(&after, FirstPage(*after.ns, tokens, tree_->page_tokens())));
  return it == pages_.end() ? nullptr : it->get();
}

void PendingPages::Mark(LockRecord& lock, std::span<const Token> rest,
                        Reservation reserved) {
  CHECK(lock.pending == nullptr);
  const auto tokens = FirstPage(*lock.node->ns, rest, tree_->page_tokens());
  if (tokens.empty()) return;
  const TreePosition end = EndOf(*lock.node);
  if (tree_->Walk(end, tokens, 1, nullptr).node != end.node) return;
  if (Find(*lock.node, tokens) != nullptr) return;
  auto page = std::make_unique<PendingPage>(
      PendingPage{.owner = &lock,
                  .after = lock.node,
                  .tokens = {tokens.begin(), tokens.end()},
                  .reserved = reserved,
                  .waits = {}});
  lock.pending = page.get();
  if (reserved != Reservation()) {
    by_reserved_[reserved] = page.get();
    is_to_be_written_[reserved.page.value()] = true;
  }
  pages_.insert(std::move(page));
}

void PendingPages::End(PendingPage* page, PendingOutcome outcome) {
  if (page == nullptr) return;
  const bool is_published = outcome == PendingOutcome::kPublished ||
                            outcome == PendingOutcome::kLoaded;
  (is_published ? counts_.published : counts_.given_up) += page->waits.size();
  for (WaitId wait : page->waits) {
    waits_.erase(wait);
    ended_.push_back({wait, outcome});
  }
  page->owner->pending = nullptr;
  by_reserved_.erase(page->reserved);
  is_to_be_written_[page->reserved.page.value()] = false;
  pages_.erase(pages_.find(Place(page->after, page->tokens)));
}

void PendingPages::GiveUp(Reservation reserved) {
  const auto it = by_reserved_.find(reserved);
  if (it != by_reserved_.end()) End(it->second, PendingOutcome::kGivenUp);
}

WaitId PendingPages::Wait(PendingPage& page, SessionId session) {
  ++counts_.waits;
  const WaitId wait(++last_wait_);
  waits_[wait] = {&page, session};
  page.waits.push_back(wait);
  return wait;
}

bool PendingPages::Cancel(WaitId wait) {
  if (!Drop(wait)) return false;
  ++counts_.timed_out;
  return true;
}

bool PendingPages::Drop(WaitId wait) {
  const auto it = waits_.find(wait);
  if (it == waits_.end()) return false;
  std::erase(it->second.page->waits, wait);
  waits_.erase(it);
  return true;
}

void PendingPages::EndWaitsOf(SessionId session) {
  std::vector<WaitId> ended;
  for (const auto& [wait, record] : waits_) {
    if (record.session == session) ended.push_back(wait);
  }
  std::sort(ended.begin(), ended.end());
  for (WaitId wait : ended) {
    Drop(wait);
    ended_.push_back({wait, PendingOutcome::kOwnerLost});
  }
  counts_.given_up += ended.size();
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
  const auto marked = std::ranges::count(is_to_be_written_, true);
  if (static_cast<size_t>(marked) != by_reserved_.size()) {
    violations.push_back(
        "pending: the marks of pages to be written are not those known");
  }
}

}  // namespace pando
