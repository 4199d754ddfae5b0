#include "clients/cpp/src/operator_convert.h"

#include "clients/cpp/src/convert.h"

namespace pando {
inline namespace client {
namespace {

MatchEnd FromProto(v1::MatchEnd end) {
  switch (end) {
    case v1::MATCH_END_COMPLETE:
      return MatchEnd::kComplete;
    case v1::MATCH_END_PAGE_FLOOR:
      return MatchEnd::kPageFloor;
    case v1::MATCH_END_DIVERGED:
      return MatchEnd::kDiverged;
    case v1::MATCH_END_EVICTED:
      return MatchEnd::kEvicted;
    case v1::MATCH_END_NEVER_CACHED:
      return MatchEnd::kNeverCached;
    default:
      return MatchEnd::kUnknown;
  }
}

NotLoaded FromProto(v1::NotLoaded reason) {
  switch (reason) {
    case v1::NOT_LOADED_NOT_ASKED:
      return NotLoaded::kNotAsked;
    case v1::NOT_LOADED_TOO_FEW:
      return NotLoaded::kTooFew;
    case v1::NOT_LOADED_NO_ROOM:
      return NotLoaded::kNoRoom;
    case v1::NOT_LOADED_NO_MOVER:
      return NotLoaded::kNoMover;
    default:
      return NotLoaded::kNone;
  }
}

}  // namespace

NamespaceInfo FromProto(const v1::NamespaceInfo& ns) {
  NamespaceInfo out{.number = ns.number(),
                    .has_cache_salt = ns.has_cache_salt(),
                    .bigram = ns.bigram(),
                    .evictable_pages = ns.evictable_pages(),
                    .protected_pages = ns.protected_pages(),
                    .nodes = ns.nodes()};
  if (ns.has_extra_key()) out.extra_key = ns.extra_key();
  return out;
}

SessionInfo FromProto(const v1::SessionInfo& session) {
  return {.session_number = session.session_number(),
          .client_name = session.client_name(),
          .locks = session.locks(),
          .reserved_pages = session.reserved_pages(),
          .age_ms = session.age_ms(),
          .is_connected = session.is_connected(),
          .is_attached = session.is_attached()};
}

LockInfo FromProto(const v1::LockInfo& lock) {
  return {.session_number = lock.session_number(),
          .client_name = lock.client_name(),
          .locked_tokens = lock.locked_tokens(),
          .age_ms = lock.age_ms(),
          .namespace_number = lock.namespace_number()};
}

QuarantineInfo FromProto(const v1::QuarantineInfo& session) {
  return {.session_number = session.session_number(),
          .client_name = session.client_name(),
          .pages = session.pages(),
          .age_ms = session.age_ms(),
          .is_held = session.is_held(),
          .living_pids = {session.living_pids().begin(),
                          session.living_pids().end()},
          .has_unwatched = session.has_unwatched()};
}

TreeNode FromProto(const v1::TreeNode& node) {
  return {.node = node.node(),
          .parent = node.parent(),
          .namespace_number = node.namespace_number(),
          .depth = node.depth(),
          .begin_token = node.begin_token(),
          .tokens = node.tokens(),
          .pages = node.pages(),
          .locks = node.locks(),
          .hits = node.hits(),
          .priority = node.priority(),
          .age_accesses = node.age_accesses()};
}

Explanation FromProto(const v1::ExplainMatchResponse& answer) {
  return {.matched_tokens = answer.matched_tokens(),
          .end = FromProto(answer.end()),
          .diverged_at = answer.diverged_at(),
          .evicted_for = FromProto(answer.evicted_for()),
          .evicted_ms_ago = answer.evicted_ms_ago(),
          .is_pending = answer.is_pending(),
          .longer_in_namespaces = {answer.longer_in_namespaces().begin(),
                                   answer.longer_in_namespaces().end()},
          .locks = AllFromProto<LockInfo>(answer.locks()),
          .loadable_tokens = answer.loadable_tokens(),
          .loadable_tier = FromProto(answer.loadable_tier()),
          .not_loaded = FromProto(answer.not_loaded())};
}

}  // namespace client
}  // namespace pando
