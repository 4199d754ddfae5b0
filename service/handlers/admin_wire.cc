#include "service/handlers/admin_wire.h"

#include "service/handlers/wire.h"

namespace pando {
namespace {

void FillNamespace(const NamespaceInfo& ns, v1::NamespaceInfo* out) {
  out->set_number(ns.number.value());
  if (ns.extra_key.has_value()) out->set_extra_key(*ns.extra_key);
  out->set_has_cache_salt(ns.has_cache_salt);
  out->set_bigram(ns.bigram);
  out->set_evictable_pages(ns.evictable_pages);
  out->set_protected_pages(ns.protected_pages);
  out->set_nodes(ns.nodes);
}

void FillSession(const SessionInfo& session, v1::SessionInfo* out) {
  out->set_session_number(session.number.value());
  out->set_client_name(session.client_name);
  out->set_locks(session.locks);
  out->set_reserved_pages(session.reserved_pages);
  out->set_age_ms(
      static_cast<uint64_t>(absl::ToInt64Milliseconds(session.age)));
  out->set_is_connected(session.is_connected);
  out->set_is_attached(session.is_attached);
  out->set_is_internal(session.is_internal);
  out->set_locked_blocks(session.locked_blocks);
  out->set_reserved_blocks(session.reserved_blocks);
  out->set_steps(session.steps);
}

void FillLock(const LockInfo& lock, v1::LockInfo* out) {
  out->set_session_number(lock.session.value());
  out->set_client_name(lock.client_name);
  out->set_locked_tokens(lock.locked_tokens);
  out->set_age_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(lock.age)));
  out->set_namespace_number(lock.ns.value());
}

v1::MatchEnd EndOnWire(MatchEnd end) {
  switch (end) {
    case MatchEnd::kComplete:
      return v1::MATCH_END_COMPLETE;
    case MatchEnd::kPageFloor:
      return v1::MATCH_END_PAGE_FLOOR;
    case MatchEnd::kDiverged:
      return v1::MATCH_END_DIVERGED;
    case MatchEnd::kEvicted:
      return v1::MATCH_END_EVICTED;
    case MatchEnd::kNeverCached:
      return v1::MATCH_END_NEVER_CACHED;
  }
  return v1::MATCH_END_UNSPECIFIED;
}

void FillQuarantined(const QuarantineInfo& session, v1::QuarantineInfo* out) {
  out->set_session_number(session.number.value());
  out->set_client_name(session.client_name);
  out->set_pages(session.pages);
  out->set_age_ms(
      static_cast<uint64_t>(absl::ToInt64Milliseconds(session.age)));
  out->set_is_held(!session.writers.empty());
  out->set_has_unwatched(session.has_unwatched);
  out->set_locked_blocks(session.locked_blocks);
  out->set_reserved_blocks(session.reserved_blocks);
}

}  // namespace

void FillFlush(const FlushResult& result, v1::FlushResponse* out) {
  out->set_evicted_pages(result.evicted_pages);
  out->set_protected_pages(result.protected_pages);
}

void FillNamespaces(const NamespaceList& list,
                    v1::ListNamespacesResponse* out) {
  for (const NamespaceInfo& ns : list.namespaces) {
    FillNamespace(ns, out->add_namespaces());
  }
  out->set_total(list.total);
}

void FillSessions(const SessionList& list, v1::ListSessionsResponse* out) {
  for (const SessionInfo& session : list.sessions) {
    FillSession(session, out->add_sessions());
  }
  out->set_total(list.total);
}

void FillLocks(const LockList& list, v1::ListLocksResponse* out) {
  for (const LockInfo& lock : list.locks) FillLock(lock, out->add_locks());
  out->set_total(list.total);
}

void FillQuarantine(const QuarantineList& list,
                    const std::function<std::optional<pid_t>(WriterId)>& pid_of,
                    v1::ListQuarantineResponse* out) {
  for (const QuarantineInfo& lost : list.sessions) {
    v1::QuarantineInfo& session = *out->add_sessions();
    FillQuarantined(lost, &session);
    for (WriterId writer : lost.writers) {
      const std::optional<pid_t> pid = pid_of(writer);
      if (pid.has_value()) session.add_living_pids(*pid);
    }
  }
  out->set_total(list.total);
}

void FillExplanation(const MatchExplanation& result,
                     v1::ExplainMatchResponse* out) {
  out->set_matched_tokens(result.matched_tokens);
  out->set_end(EndOnWire(result.end));
  out->set_diverged_at(result.diverged_at);
  if (result.eviction.has_value()) {
    out->set_evicted_for(ReasonOnWire(result.eviction->reason));
    out->set_evicted_ms_ago(
        static_cast<uint64_t>(absl::ToInt64Milliseconds(result.eviction->age)));
  }
  out->set_is_pending(result.is_pending);
  for (const NamespaceNumber ns : result.longer_in_namespaces) {
    out->add_longer_in_namespaces(ns.value());
  }
  for (const LockInfo& lock : result.locks) FillLock(lock, out->add_locks());
}

v1::NotLoaded NotLoadedOnWire(LoadObstacle obstacle) {
  switch (obstacle) {
    case LoadObstacle::kNone:
      return v1::NOT_LOADED_NOT_ASKED;
    case LoadObstacle::kTooFew:
      return v1::NOT_LOADED_TOO_FEW;
    case LoadObstacle::kNoRoom:
      return v1::NOT_LOADED_NO_ROOM;
    case LoadObstacle::kNoMover:
      return v1::NOT_LOADED_NO_MOVER;
  }
  return v1::NOT_LOADED_UNSPECIFIED;
}

void FillNode(const TreeNodeInfo& node, v1::TreeNode* out) {
  out->set_node(node.node);
  out->set_parent(node.parent);
  out->set_namespace_number(node.ns.value());
  out->set_depth(node.depth);
  out->set_begin_token(node.begin_token);
  out->set_tokens(node.tokens);
  out->set_pages(node.pages);
  out->set_locks(node.locks);
  out->set_hits(node.hits);
  out->set_priority(node.priority);
  out->set_age_accesses(node.age_accesses);
}

}  // namespace pando
