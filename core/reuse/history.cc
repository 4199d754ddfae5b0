#include "core/reuse/history.h"

#include "absl/strings/str_cat.h"
#include "core/requests/namespace.h"

namespace pando {

History::History(const Slab<Node>* nodes, const NodeRuns* runs,
                 GhostRuns* ghosts, uint32_t quota_classes, uint32_t first_tick)
    : nodes_(nodes),
      runs_(runs),
      ghosts_(ghosts),
      tick_(first_tick),
      oldest_unlocked_(quota_classes, kNoRun) {
  younger_.fill(kNoRun);
  due_.fill(kNever);
  for (uint32_t b = 0; b < kAgeBins; ++b) first_ages_[b] = FirstAge(b);
}

void History::Append(RunLink link) {
  Run& run = At(link);
  run.at = tick_;
  run.bin = 0;
  Link(newest_, link);
  Link(link, kNoRun);
  for (uint32_t b = 1; b < kAgeBins && younger_[b] == kNoRun; ++b) {
    SetYounger(b, link);
  }
  for (RunLink& oldest : oldest_unlocked_) {
    if (oldest == kNoRun) oldest = link;
  }
}

void History::Remove(RunLink link) {
  const Run& run = At(link);
  MoveBounds(run.bin + 1, link, run.newer);
  for (RunLink& oldest : oldest_unlocked_) {
    if (oldest == link) oldest = run.newer;
  }
  Link(run.older, run.newer);
}

void History::Replace(RunLink link, RunLink with) {
  const Run& run = At(link);
  MoveBounds(run.bin + 1, link, with);
  for (RunLink& oldest : oldest_unlocked_) {
    if (oldest == link) oldest = with;
  }
  const RunLink newer = run.newer;
  Link(run.older, with);
  Link(with, newer);
}

void History::PutAfter(RunLink link, RunLink older) {
  const RunLink newer = At(older).newer;
  Link(older, link);
  Link(link, newer);
}

void History::PutBefore(RunLink link, RunLink newer) {
  Run& run = At(link);
  run.at = tick_;
  run.bin = 0;
  Link(At(newer).older, link);
  Link(link, newer);
  MoveBounds(1, newer, link);
}

// A locked node is passed over for good, because it becomes the newest when it
// is unlocked; see ReuseLearner::AreNewest.
Node* History::OldestUnlocked(uint32_t quota_class) {
  RunLink& link = oldest_unlocked_[quota_class];
  for (; link != kNoRun; link = At(link).newer) {
    if (IsGhost(link)) continue;
    Node* const node = nodes_->FindAt(link);
    if (!node->is_locked() && node->ns->quota_class == quota_class) return node;
  }
  return nullptr;
}

void History::Link(RunLink older, RunLink newer) {
  (older == kNoRun ? oldest_ : At(older).newer) = newer;
  (newer == kNoRun ? newest_ : At(newer).older) = older;
}

void History::MoveBounds(uint32_t bin, RunLink link, RunLink other) {
  for (; bin < kAgeBins && younger_[bin] == link; ++bin) {
    SetYounger(bin, other);
  }
}

void History::AppendViolations(const Node& node,
                               std::vector<std::string>& violations) const {
  const auto expect = [&](bool holds, const char* what) {
    if (holds) return;
    violations.push_back(absl::StrCat("reuse: node ", node.id, " ", what));
  };
  const RunLink link = Slab<Node>::IndexOf(node);
  const Run& run = At(link);
  const bool is_listed =
      (run.older == kNoRun ? oldest_ : At(run.older).newer) == link &&
      (run.newer == kNoRun ? newest_ : At(run.newer).older) == link;
  expect(is_listed, "is missing in the history");
  expect(run.pages == node.page_count, "has other pages in the history");
  expect(run.at <= tick_, "was used in the future");
  const uint32_t age = tick_ - run.at;
  expect(first_ages_[run.bin] <= age &&
             (run.bin + 1 == kAgeBins || age < first_ages_[run.bin + 1]),
         "is in the bin of another age");
  if (!is_listed || run.older == kNoRun) return;
  expect(At(run.older).at <= run.at, "is too far back in the history");
}

}  // namespace pando
