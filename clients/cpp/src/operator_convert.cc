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

BlockFate FromProto(v1::BlockFate fate) {
  switch (fate) {
    case v1::BLOCK_FATE_READY:
      return BlockFate::kReady;
    case v1::BLOCK_FATE_PENDING:
      return BlockFate::kPending;
    case v1::BLOCK_FATE_OVERDUE:
      return BlockFate::kOverdue;
    case v1::BLOCK_FATE_EVICTED:
      return BlockFate::kEvicted;
    case v1::BLOCK_FATE_NEVER_STORED:
      return BlockFate::kNeverStored;
    default:
      return BlockFate::kUnknown;
  }
}

BlockEviction FromProto(v1::BlockEviction reason) {
  switch (reason) {
    case v1::BLOCK_EVICTION_ROOM:
      return BlockEviction::kRoom;
    case v1::BLOCK_EVICTION_EXTENT:
      return BlockEviction::kExtent;
    case v1::BLOCK_EVICTION_KIND_ENDED:
      return BlockEviction::kKindEnded;
    default:
      return BlockEviction::kUnknown;
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
          .is_attached = session.is_attached(),
          .locked_blocks = session.locked_blocks(),
          .reserved_blocks = session.reserved_blocks(),
          .is_internal = session.is_internal(),
          .steps = session.steps()};
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
          .has_unwatched = session.has_unwatched(),
          .locked_blocks = session.locked_blocks(),
          .reserved_blocks = session.reserved_blocks()};
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

KindInfo FromProto(const v1::KindInfo& kind) {
  KindInfo out{.kind_number = kind.kind_number(),
               .generation = kind.generation(),
               .is_newest = kind.is_newest(),
               .label = kind.label(),
               .identity = kind.identity(),
               .has_cache_salt = kind.has_cache_salt(),
               .key_bytes = kind.key_bytes(),
               .shards = kind.shards(),
               .block_bytes = kind.block_bytes(),
               .sessions = kind.sessions(),
               .memory_bytes = kind.memory_bytes(),
               .evictable_blocks = kind.evictable_blocks(),
               .protected_blocks = kind.protected_blocks(),
               .reserved_blocks = kind.reserved_blocks(),
               .free_blocks = kind.free_blocks(),
               .hits = kind.hits(),
               .misses = kind.misses(),
               .pending = kind.pending(),
               .published_blocks = kind.published_blocks(),
               .evicted_blocks = kind.evicted_blocks(),
               .no_room = kind.no_room(),
               .overdue = kind.overdue()};
  if (kind.has_extra_key()) out.extra_key = kind.extra_key();
  return out;
}

BlockExplanation FromProto(const v1::ExplainBlockResponse& answer) {
  return {.fate = FromProto(answer.fate()),
          .locks = answer.locks(),
          .followers = answer.followers(),
          .age_ms = answer.age_ms(),
          .evicted_for = FromProto(answer.evicted_for()),
          .session_number = answer.session_number(),
          .client_name = answer.client_name()};
}

}  // namespace client
}  // namespace pando
