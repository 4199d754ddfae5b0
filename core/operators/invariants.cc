#include "core/operators/invariants.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/parts/stepped_work.h"

namespace pando {
namespace {

constexpr uint32_t kStepPages = 20'000;
constexpr uint32_t kAll = std::numeric_limits<uint32_t>::max();

}  // namespace

InvariantCheck::InvariantCheck(CacheParts& parts)
    : parts_(parts),
      audit_(parts.pool.capacity(), parts.quota_classes.count(),
             parts.tree.namespace_count()) {
  parts_.tree.set_audit(&audit_);
  parts_.sessions.set_audit(&audit_);
  parts_.pool.set_audit(&audit_);
}

InvariantCheck::~InvariantCheck() {
  parts_.tree.set_audit(nullptr);
  parts_.sessions.set_audit(nullptr);
  parts_.pool.set_audit(nullptr);
}

bool InvariantCheck::Step() {
  const auto go_on = [this](bool is_over, Stage next_stage) {
    if (!is_over) return;
    stage_ = next_stage;
    next_ = 0;
  };
  switch (stage_) {
    case Stage::kLocks:
      go_on(CountLocks(), Stage::kNodes);
      break;
    case Stage::kNodes:
      go_on(CountNodes(), Stage::kNeighbours);
      break;
    case Stage::kNeighbours:
      go_on(CheckNeighbours(), Stage::kPages);
      break;
    case Stage::kPages:
      go_on(CheckPages(), Stage::kNamespaces);
      break;
    case Stage::kNamespaces:
      go_on(CheckNamespaces(), Stage::kSessions);
      break;
    case Stage::kSessions:
      go_on(CheckSessions(), Stage::kBlocks);
      break;
    case Stage::kBlocks:
      go_on(blocks_.Step(parts_, violations_), Stage::kTotals);
      break;
    case Stage::kTotals:
      CheckTotals();
      return true;
  }
  return false;
}

bool InvariantCheck::CountLocks() {
  const uint32_t cells = parts_.sessions.lock_cells();
  for (uint32_t i = 0; i < kStepCells && next_ < cells; ++i) {
    const LockRecord* lock = parts_.sessions.LockAt(next_++);
    if (lock == nullptr) continue;
    audit_.AddLock(*lock->node);
    Expect(lock->session->end.has_value() ||
               parts_.sessions.Find(lock->session->id) == lock->session,
           "sessions: a lock belongs to no live session");
  }
  const bool is_over = next_ == cells;
  audit_.set_counted_locks(is_over ? kAll : next_);
  return is_over;
}

bool InvariantCheck::CountNodes() {
  const uint32_t cells = parts_.tree.node_cells();
  for (uint32_t i = 0; i < kStepCells && next_ < cells; ++i) {
    const Node* node = parts_.tree.NodeAt(next_++);
    if (node == nullptr) continue;
    audit_.Add(*node);
    if (node->is_root() || !node->is_within_segment()) continue;
    audit_.AddPages(node->pages());
  }
  const bool is_over = next_ == cells;
  audit_.set_counted_nodes(is_over ? kAll : next_);
  return is_over;
}

bool InvariantCheck::CheckNeighbours() {
  const uint32_t cells = parts_.tree.node_cells();
  for (uint32_t i = 0; i < kStepCells && next_ < cells; ++i) {
    const Node* node = parts_.tree.NodeAt(next_++);
    if (node == nullptr) continue;
    parts_.tree.AppendViolations(*node, audit_.ExpectedLockCount(*node),
                                 violations_);
  }
  const bool is_over = next_ == cells;
  audit_.set_seen_nodes(is_over ? kAll : next_);
  return is_over;
}

bool InvariantCheck::CheckPages() {
  const uint32_t end = std::min(parts_.pool.capacity(), next_ + kStepPages);
  for (; next_ < end; ++next_) {
    const PageId page(next_);
    const PageState state = parts_.pool.state(page);
    audit_.Add(state, parts_.pool.quota_class(page));
    parts_.pool.AppendViolations(page, violations_);
    const bool is_sealed = state == PageState::kSealed;
    if (is_sealed == audit_.in_tree_[next_]) continue;
    violations_.push_back(
        is_sealed
            ? absl::StrCat("pool: page ", next_, " is in no node, but sealed")
            : absl::StrCat("tree: page ", next_, " is not sealed"));
  }
  audit_.set_counted_pages(next_);
  return next_ == parts_.pool.capacity();
}

bool InvariantCheck::CheckNamespaces() {
  for (uint32_t i = 0; i < kStepEntries; ++i) {
    const Namespace* ns = parts_.tree.NamespaceAfter(last_namespace_);
    if (ns == nullptr) return true;
    if (ns->number <= last_namespace_) {
      violations_.push_back("tree: a namespace is listed by another number");
      return true;
    }
    last_namespace_ = ns->number;
    const auto counted = audit_.by_namespace_.find(ns);
    ExpectSums(counted == audit_.by_namespace_.end() ? CacheAudit::Sums()
                                                     : counted->second,
               {ns->evictable_pages, ns->protected_pages, ns->nodes},
               "a namespace");
  }
  return false;
}

bool InvariantCheck::CheckSessions() {
  for (size_t pages = 0; pages < kStepPages; ++pages) {
    const Session* session = parts_.sessions.SessionAfter(last_session_);
    if (session == nullptr) return true;
    last_session_ = session->number;
    for (PageId page : session->reserved.pages) {
      if (parts_.pool.IsReservedBy(session->reserved, page)) continue;
      violations_.push_back(absl::StrCat("sessions: page ", page.value(),
                                         " is not reserved by its owner"));
    }
    pages += session->reserved.pages.size();
  }
  return false;
}

void InvariantCheck::CheckTotals() {
  const RadixTree& tree = parts_.tree;
  const PagePool& pool = parts_.pool;
  ExpectSums(
      audit_.all_,
      {tree.evictable_pages(), tree.protected_pages(), tree.node_count()},
      "the tree");
  if (audit_.roots_ != tree.namespace_count()) {
    violations_.push_back(absl::StrCat("tree: ", audit_.roots_, " roots, but ",
                                       tree.namespace_count(), " namespaces"));
  }
  for (uint32_t c = 0; c < parts_.quota_classes.count(); ++c) {
    const int64_t evictable = tree.evictable_pages(c);
    ExpectSums(audit_.by_class_[c],
               {evictable, tree.cached_pages(c) - evictable,
                audit_.by_class_[c].nodes},
               "a class of namespaces");
    const std::optional<size_t> leaves = tree.order(c).leaf_count();
    const auto counted = static_cast<size_t>(audit_.unlocked_leaves_[c]);
    if (leaves.has_value() && *leaves != counted) {
      violations_.push_back(absl::StrCat(
          "tree: ", *leaves, " leaves in the order of eviction of ", counted));
    }
    Expect(
        audit_.ended_leaves_[c] == static_cast<int64_t>(tree.ended_leaves(c)),
        "tree: the list of ended leaves is not as long as it should be");
    Expect(audit_.reserved_[c] == pool.reserved_count(c),
           "pool: the counts by state or class are wrong");
  }
  for (PageId page : audit_.in_two_nodes_) {
    violations_.push_back(
        absl::StrCat("tree: page ", page.value(), " is in two nodes"));
  }
  Expect(audit_.unseen_locks_ == 0,
         "sessions: a lock names a node that is gone");

  for (size_t s = 0; s < kPageStates; ++s) {
    Expect(audit_.by_state_[s] == pool.count(static_cast<PageState>(s)),
           "pool: the counts by state or class are wrong");
  }
  Expect(pool.listed_free_pages() == pool.count(PageState::kFree),
         "pool: the list of free pages is not as long as it should be");
  size_t reserved = 0;
  const auto count = [&](const Session& session) {
    reserved += session.reserved.pages.size();
  };
  parts_.sessions.ForEachSession(count);
  parts_.sessions.ForEachEnded(count);
  Expect(reserved == pool.count(PageState::kReserved),
         "pool: a reserved page belongs to no session");
  Expect(parts_.holdings.quarantine().page_count() +
                 parts_.holdings.quarantined_elsewhere() ==
             pool.count(PageState::kQuarantined),
         "pool: a quarantined page is in no batch");
  CheckPending();
}

void InvariantCheck::CheckPending() {
  parts_.pending.AppendViolations(violations_);
  parts_.pending.ForEach([&](const PendingPage& page) {
    const TreePosition end = EndOf(*page.owner->node);
    Expect(parts_.tree.Walk(end, page.tokens, 1, nullptr).node == end.node,
           "pending: a page is cached already");
  });
}

void InvariantCheck::ExpectSums(const CacheAudit::Sums& counted,
                                const CacheAudit::Sums& sums, const char* of) {
  if (counted == sums) return;
  const auto describe = [](const CacheAudit::Sums& s) {
    return absl::StrCat(s.nodes, " nodes, ", s.evictable, " evictable and ",
                        s.locked, " protected pages");
  };
  violations_.push_back(absl::StrCat("tree: ", of, " has ", describe(counted),
                                     ", but ", describe(sums), " are counted"));
}

}  // namespace pando
