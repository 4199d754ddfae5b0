#include "core/listings.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/preorder.h"

namespace pando {
namespace {

// Brings the first `limit` in order to the front and drops the others.
template <typename T, typename Less>
void KeepFirst(std::vector<T>& all, size_t limit, Less less) {
  const size_t kept = std::min(all.size(), limit);
  std::partial_sort(all.begin(), all.begin() + static_cast<ptrdiff_t>(kept),
                    all.end(), less);
  all.resize(kept);
}

bool IsLarger(const Namespace* a, const Namespace* b) {
  const uint32_t a_pages = a->evictable_pages + a->protected_pages;
  const uint32_t b_pages = b->evictable_pages + b->protected_pages;
  if (a_pages != b_pages) return a_pages > b_pages;
  return a->number < b->number;
}

NamespaceInfo InfoOf(const Namespace& ns) {
  return {.number = ns.number,
          .extra_key = ns.key->extra_key,
          .has_cache_salt = ns.key->cache_salt.has_value(),
          .bigram = ns.key->bigram,
          .evictable_pages = ns.evictable_pages,
          .protected_pages = ns.protected_pages,
          .nodes = ns.nodes};
}

SessionInfo InfoOf(const Session& session, absl::Time now) {
  return {
      .number = session.number,
      .client_name = session.client_name,
      .locks = session.lock_count,
      .reserved_pages = static_cast<uint32_t>(session.reserved.pages.size()),
      .age = now - session.opened_at,
      .is_connected = !session.lost_at.has_value(),
      .is_attached = session.writers.has_mapped()};
}

QuarantineInfo InfoOf(const Quarantine::Batch& batch, absl::Time now) {
  return {.number = batch.number,
          .client_name = batch.client_name,
          .pages = static_cast<uint32_t>(batch.pages.size()),
          .age = now - batch.since,
          .writers = batch.writers.living(),
          .has_unwatched = batch.writers.has_unwatched()};
}

// Appends the nodes of `ns`, each after its parent, until there are `limit`.
void DumpNamespace(const RadixTree& tree, const Namespace& ns, uint32_t limit,
                   TreeDump& dump) {
  std::vector<const Node*> ancestors = {ns.root};  // of the node before
  const Node* node = ns.root;
  while (dump.nodes.size() < limit &&
         (node = NextInPreorder(*ns.root, *node)) != nullptr) {
    while (ancestors.back() != node->parent) ancestors.pop_back();
    dump.nodes.push_back(
        {.node = node->id,
         .parent = node->parent->is_root() ? 0 : node->parent->id,
         .ns = ns.number,
         .depth = static_cast<uint32_t>(ancestors.size() - 1),
         .begin_token = node->depth_pages * tree.page_tokens(),
         .tokens = node->page_count * tree.page_tokens(),
         .pages = node->page_count,
         .locks = node->lock_count,
         .hits = node->hit_count,
         .priority = node->priority,
         .age_accesses = tree.now() - node->last_access});
    ancestors.push_back(node);
  }
}

}  // namespace

CacheStats StatsOf(const CacheParts& parts) {
  const RadixTree& tree = parts.tree;
  const PagePool& pool = parts.pool;
  CacheStats stats;
  stats.pages.free = pool.count(PageState::kFree);
  stats.pages.reserved = pool.count(PageState::kReserved);
  stats.pages.evictable = tree.evictable_pages();
  stats.pages.protected_ = tree.protected_pages();
  stats.pages.quarantined = pool.count(PageState::kQuarantined);
  stats.pages.padding = pool.count(PageState::kPadding);
  stats.pages.capacity = pool.capacity();
  stats.counters = parts.journal.counters();
  const PendingPages::Counts& waits = parts.pending.counts();
  stats.counters.pending_waits = waits.waits;
  stats.counters.pending_waits_published = waits.published;
  stats.counters.pending_waits_given_up = waits.given_up;
  stats.counters.pending_waits_timed_out = waits.timed_out;
  stats.sessions = parts.sessions.session_count();
  stats.locks = parts.sessions.lock_count();
  stats.nodes = tree.node_count();
  stats.namespaces = tree.namespace_count();
  stats.waits = parts.pending.wait_count();
  stats.held_pages = parts.holdings.quarantine().held_page_count();
  stats.eviction_policy = tree.policy();
  if (const LockRecord* oldest = parts.sessions.oldest_lock();
      oldest != nullptr) {
    stats.oldest_lock_age = parts.journal.time() - oldest->taken_at;
  }
  stats.measured = parts.journal.measured();
  if (!parts.quota_classes.are_configured()) return stats;
  for (uint32_t c = 0; c < parts.quota_classes.count(); ++c) {
    stats.quota_classes.push_back(
        {.name = parts.quota_classes.name(c),
         .floor_pages = parts.budget.limits(c).floor_pages,
         .cap_pages = parts.budget.limits(c).cap_pages,
         .reserved_pages = pool.reserved_count(c),
         .cached_pages = tree.cached_pages(c)});
  }
  return stats;
}

NamespaceList ListNamespaces(const RadixTree& tree, uint32_t limit) {
  std::vector<const Namespace*> all;
  tree.ForEachNamespace([&](const Namespace& ns) { all.push_back(&ns); });
  NamespaceList list{.namespaces = {},
                     .total = static_cast<uint32_t>(all.size())};
  KeepFirst(all, limit, IsLarger);
  for (const Namespace* ns : all) list.namespaces.push_back(InfoOf(*ns));
  return list;
}

SessionList ListSessions(const CacheParts& parts, uint32_t limit) {
  std::vector<const Session*> all;
  parts.sessions.ForEachSession([&](const Session& s) { all.push_back(&s); });
  SessionList list{.sessions = {}, .total = static_cast<uint32_t>(all.size())};
  KeepFirst(all, limit, [](const Session* a, const Session* b) {
    return a->number < b->number;
  });
  for (const Session* s : all)
    list.sessions.push_back(InfoOf(*s, parts.journal.time()));
  return list;
}

LockList ListLocks(const CacheParts& parts, uint32_t limit,
                   std::optional<SessionNumber> session) {
  std::vector<FoundLock> found;
  parts.sessions.ForEachLock([&](const LockRecord& lock) {
    if (session.has_value() && lock.session->number != *session) return;
    found.push_back({&lock, lock.node->end_pages()});
  });
  LockList list{.locks = {}, .total = static_cast<uint32_t>(found.size())};
  list.locks = OldestLocks(parts, std::move(found), limit);
  return list;
}

// The handle makes the order one that does not change from call to call.
std::vector<LockInfo> OldestLocks(const CacheParts& parts,
                                  std::vector<FoundLock> found, size_t limit) {
  KeepFirst(found, limit, [](const FoundLock& a, const FoundLock& b) {
    const auto order = [](const LockRecord& lock) {
      return std::make_tuple(lock.taken_at, lock.session->number,
                             SessionTable::IdOf(lock));
    };
    return order(*a.lock) < order(*b.lock);
  });
  std::vector<LockInfo> infos;
  infos.reserve(found.size());
  for (const auto& [lock, pages] : found) {
    infos.push_back({.session = lock->session->number,
                     .client_name = lock->session->client_name,
                     .locked_tokens = pages * parts.page_tokens(),
                     .age = parts.journal.time() - lock->taken_at,
                     .ns = lock->node->ns->number,
                     .node = lock->node->id});
  }
  return infos;
}

QuarantineList ListQuarantine(const CacheParts& parts, uint32_t limit) {
  const auto& batches = parts.holdings.quarantine().batches();
  QuarantineList list{.sessions = {},
                      .total = static_cast<uint32_t>(batches.size())};
  for (const Quarantine::Batch& batch : batches) {
    if (list.sessions.size() == limit) break;
    list.sessions.push_back(InfoOf(batch, parts.journal.time()));
  }
  return list;
}

TreeDump DumpTree(const RadixTree& tree, uint32_t limit,
                  std::optional<NamespaceNumber> number) {
  std::vector<const Namespace*> namespaces;
  uint32_t total = 0;
  tree.ForEachNamespace([&](const Namespace& ns) {
    if (number.has_value() && ns.number != *number) return;
    namespaces.push_back(&ns);
    total += ns.nodes;
  });
  std::sort(namespaces.begin(), namespaces.end(),
            [](const auto* a, const auto* b) { return a->number < b->number; });
  TreeDump dump;
  dump.nodes.reserve(std::min(limit, total));
  for (const Namespace* ns : namespaces) DumpNamespace(tree, *ns, limit, dump);
  dump.omitted = total - static_cast<uint32_t>(dump.nodes.size());
  return dump;
}

}  // namespace pando
