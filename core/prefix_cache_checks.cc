// The statistics of PrefixCache and its self-check.

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/prefix_cache.h"

namespace pando {

CacheStats PrefixCache::Stats() {
  absl::MutexLock hold(&mutex_);
  CacheStats stats;
  stats.pages.free = pool_.count(PageState::kFree);
  stats.pages.reserved = pool_.count(PageState::kReserved);
  stats.pages.evictable = tree_.evictable_pages();
  stats.pages.protected_ = tree_.protected_pages();
  stats.pages.quarantined = pool_.count(PageState::kQuarantined);
  stats.pages.padding = pool_.count(PageState::kPadding);
  stats.pages.capacity = pool_.capacity();
  stats.counters = counters_;
  stats.sessions = sessions_.session_count();
  stats.locks = sessions_.lock_count();
  stats.nodes = tree_.node_count();
  stats.namespaces = tree_.namespace_count();
  stats.waits = pending_.wait_count();
  stats.eviction_policy = tree_.policy();
  if (const LockRecord* oldest = sessions_.oldest_lock(); oldest != nullptr) {
    stats.oldest_lock_age = time_ - oldest->taken_at;
  }
  stats.measured = measured_;
  if (!quotas_.are_configured()) return stats;
  for (uint32_t c = 0; c < quotas_.count(); ++c) {
    stats.quota_classes.push_back({.name = quotas_.name(c),
                                   .floor_pages = class_limits_[c].floor_pages,
                                   .cap_pages = class_limits_[c].cap_pages,
                                   .reserved_pages = pool_.reserved_count(c),
                                   .cached_pages = tree_.cached_pages(c)});
  }
  return stats;
}

bool PrefixCache::IsIdle() {
  absl::MutexLock hold(&mutex_);
  return sessions_.lock_count() == 0 && pool_.count(PageState::kReserved) == 0;
}

std::vector<std::string> PrefixCache::CheckInvariants() {
  absl::MutexLock hold(&mutex_);
  std::vector<std::string> violations;
  pool_.AppendViolations(violations);

  absl::flat_hash_map<const Node*, uint32_t> locks_on;
  sessions_.ForEachLock([&](const LockRecord& lock) {
    mutex_.AssertHeld();  // for the analysis: a lambda is a function apart
    ++locks_on[lock.node];
    if (sessions_.Find(lock.session->id) != lock.session) {
      violations.push_back("sessions: a lock belongs to no live session");
    }
  });
  tree_.AppendViolations(
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

  pending_.AppendViolations(violations);
  pending_.ForEach([&](const PendingPage& page) {
    mutex_.AssertHeld();
    const TreePosition end = EndOf(*page.owner->node);
    if (tree_.Walk(end, page.tokens, 1, nullptr).node != end.node) {
      violations.push_back("pending: a page is cached already");
    }
  });

  absl::flat_hash_set<PageId> in_tree;
  tree_.ForEachNode([&](const Node& node) {
    mutex_.AssertHeld();
    if (!node.is_within_segment()) return;  // the tree has told
    for (PageId page : node.pages()) {
      if (!in_tree.insert(page).second) {
        violations.push_back(
            absl::StrCat("tree: page ", page.value(), " is in two nodes"));
      }
      if (pool_.state(page) != PageState::kSealed) {
        violations.push_back(
            absl::StrCat("tree: page ", page.value(), " is not sealed"));
      }
    }
  });
  if (in_tree.size() != pool_.count(PageState::kSealed)) {
    violations.push_back("pool: a sealed page is in no node");
  }
  size_t reserved = 0;
  sessions_.ForEachSession([&](const Session& session) {
    mutex_.AssertHeld();
    reserved += session.reserved.pages.size();
    for (PageId page : session.reserved.pages) {
      if (!pool_.IsReservedBy(session.reserved, page)) {
        violations.push_back(absl::StrCat("sessions: page ", page.value(),
                                          " is not reserved by its owner"));
      }
    }
  });
  if (reserved != pool_.count(PageState::kReserved)) {
    violations.push_back("pool: a reserved page belongs to no session");
  }
  if (quarantine_.page_count() != pool_.count(PageState::kQuarantined)) {
    violations.push_back("pool: a quarantined page is in no batch");
  }
  return violations;
}

}  // namespace pando
