#include "core/invariants.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace pando {
namespace {

void CheckTreeAndLocks(const CacheParts& parts,
                       std::vector<std::string>& violations) {
  absl::flat_hash_map<const Node*, uint32_t> locks_on;
  parts.sessions.ForEachLock([&](const LockRecord& lock) {
    ++locks_on[lock.node];
    if (parts.sessions.Find(lock.session->id) != lock.session) {
      violations.push_back("sessions: a lock belongs to no live session");
    }
  });
  parts.tree.AppendViolations(
      [&](const Node& node) -> uint32_t {
        const auto it = locks_on.find(&node);
        if (it == locks_on.end()) return 0;
        const uint32_t locks = it->second;
        locks_on.erase(it);
        return locks;
      },
      violations);
  if (!locks_on.empty()) {
    violations.push_back("sessions: a lock names a node that is gone");
  }
}

void CheckPendingPages(const CacheParts& parts,
                       std::vector<std::string>& violations) {
  parts.pending.AppendViolations(violations);
  parts.pending.ForEach([&](const PendingPage& page) {
    const TreePosition end = EndOf(*page.owner->node);
    if (parts.tree.Walk(end, page.tokens, 1, nullptr).node != end.node) {
      violations.push_back("pending: a page is cached already");
    }
  });
}

void CheckSealedPages(const CacheParts& parts,
                      std::vector<std::string>& violations) {
  absl::flat_hash_set<PageId> in_tree;
  parts.tree.ForEachNode([&](const Node& node) {
    if (!node.is_within_segment()) return;  // the tree has told
    for (PageId page : node.pages()) {
      if (!in_tree.insert(page).second) {
        violations.push_back(
            absl::StrCat("tree: page ", page.value(), " is in two nodes"));
      }
      if (parts.pool.state(page) != PageState::kSealed) {
        violations.push_back(
            absl::StrCat("tree: page ", page.value(), " is not sealed"));
      }
    }
  });
  if (in_tree.size() != parts.pool.count(PageState::kSealed)) {
    violations.push_back("pool: a sealed page is in no node");
  }
}

void CheckOwnedPages(const CacheParts& parts,
                     std::vector<std::string>& violations) {
  size_t reserved = 0;
  parts.sessions.ForEachSession([&](const Session& session) {
    reserved += session.reserved.pages.size();
    for (PageId page : session.reserved.pages) {
      if (!parts.pool.IsReservedBy(session.reserved, page)) {
        violations.push_back(absl::StrCat("sessions: page ", page.value(),
                                          " is not reserved by its owner"));
      }
    }
  });
  if (reserved != parts.pool.count(PageState::kReserved)) {
    violations.push_back("pool: a reserved page belongs to no session");
  }
  if (parts.holdings.quarantine().page_count() !=
      parts.pool.count(PageState::kQuarantined)) {
    violations.push_back("pool: a quarantined page is in no batch");
  }
}

}  // namespace

std::vector<std::string> FindViolations(const CacheParts& parts) {
  std::vector<std::string> violations;
  parts.pool.AppendViolations(violations);
  CheckTreeAndLocks(parts, violations);
  CheckPendingPages(parts, violations);
  CheckSealedPages(parts, violations);
  CheckOwnedPages(parts, violations);
  return violations;
}

}  // namespace pando
