// What operators ask PrefixCache for: who is there, who holds what, the tree.
// prefix_cache_explain.cc explains matches.

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/errors.h"
#include "core/prefix_cache.h"
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
      .is_attached = session.is_attached};
}

}  // namespace

NamespaceList PrefixCache::ListNamespaces(uint32_t limit) {
  absl::MutexLock hold(&mutex_);
  std::vector<const Namespace*> all;
  tree_.ForEachNamespace([&](const Namespace& ns) { all.push_back(&ns); });
  NamespaceList list{.namespaces = {},
                     .total = static_cast<uint32_t>(all.size())};
  KeepFirst(all, limit, IsLarger);
  for (const Namespace* ns : all) list.namespaces.push_back(InfoOf(*ns));
  return list;
}

SessionList PrefixCache::ListSessions(uint32_t limit) {
  absl::MutexLock hold(&mutex_);
  std::vector<const Session*> all;
  sessions_.ForEachSession([&](const Session& s) { all.push_back(&s); });
  SessionList list{.sessions = {}, .total = static_cast<uint32_t>(all.size())};
  KeepFirst(all, limit, [](const Session* a, const Session* b) {
    return a->number < b->number;
  });
  for (const Session* s : all) list.sessions.push_back(InfoOf(*s, time_));
  return list;
}

LockList PrefixCache::ListLocks(uint32_t limit,
                                std::optional<SessionNumber> session) {
  absl::MutexLock hold(&mutex_);
  std::vector<FoundLock> found;
  sessions_.ForEachLock([&](const LockRecord& lock) {
    if (session.has_value() && lock.session->number != *session) return;
    found.push_back({&lock, lock.node->end_pages()});
  });
  LockList list{.locks = {}, .total = static_cast<uint32_t>(found.size())};
  list.locks = OldestLocks(std::move(found), limit);
  return list;
}

// The handle makes the order one that does not change from call to call.
std::vector<LockInfo> PrefixCache::OldestLocks(std::vector<FoundLock> found,
                                               size_t limit) const {
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
                     .locked_tokens = pages * options_.page_tokens,
                     .age = time_ - lock->taken_at,
                     .ns = lock->node->ns->number,
                     .node = lock->node->id});
  }
  return infos;
}

absl::StatusOr<uint32_t> PrefixCache::ReleaseLocks(SessionNumber number) {
  Hold hold(this);
  Session* session = nullptr;
  sessions_.ForEachSession([&](Session& candidate) {
    if (candidate.number == number) session = &candidate;
  });
  if (session == nullptr) {
    return MakeError(
        Reason::kSessionLost,
        absl::StrCat("session_number ", number.value(),
                     " is not the number of a session that is open"));
  }
  uint32_t released = 0;
  for (; session->first_lock != nullptr; ++released) {
    ReleaseLock(*session->first_lock, LockEnd::kOperator);
  }
  return released;
}

TreeDump PrefixCache::DumpTree(uint32_t limit,
                               std::optional<NamespaceNumber> number) {
  absl::MutexLock hold(&mutex_);
  std::vector<const Namespace*> namespaces;
  uint32_t total = 0;
  tree_.ForEachNamespace([&](const Namespace& ns) {
    if (number.has_value() && ns.number != *number) return;
    namespaces.push_back(&ns);
    total += ns.nodes;
  });
  std::sort(namespaces.begin(), namespaces.end(),
            [](const auto* a, const auto* b) { return a->number < b->number; });
  TreeDump dump;
  dump.nodes.reserve(std::min(limit, total));
  for (const Namespace* ns : namespaces) DumpNamespace(*ns, limit, dump);
  dump.omitted = total - static_cast<uint32_t>(dump.nodes.size());
  return dump;
}

void PrefixCache::DumpNamespace(const Namespace& ns, uint32_t limit,
                                TreeDump& dump) const {
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
         .begin_token = node->depth_pages * options_.page_tokens,
         .tokens = node->page_count * options_.page_tokens,
         .pages = node->page_count,
         .locks = node->lock_count,
         .hits = node->hit_count,
         .priority = node->priority,
         .age_accesses = tree_.now() - node->last_access});
    ancestors.push_back(node);
  }
}

}  // namespace pando
