#include "service/handlers/block_wire.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/requests/errors.h"

namespace pando {
namespace {

absl::StatusOr<BlockShape> ShapeOf(v1::Shape shape) {
  switch (shape) {
    case v1::SHAPE_UNSPECIFIED:
      return BlockShape::kEach;
    case v1::SHAPE_PREFIX:
      return BlockShape::kPrefix;
    case v1::SHAPE_WINDOW:
      return BlockShape::kWindow;
    case v1::SHAPE_CHECKPOINT:
      return BlockShape::kCheckpoint;
    default:
      return MakeError(Reason::kInvalidField,
                       absl::StrCat("shape is ", static_cast<int>(shape),
                                    ", which this server does not know"));
  }
}

void FillNamespace(const NamespaceKey& ns, v1::Namespace* out) {
  if (ns.extra_key.has_value()) out->set_extra_key(*ns.extra_key);
  if (ns.cache_salt.has_value()) out->set_cache_salt(*ns.cache_salt);
  out->set_bigram(ns.bigram);
}

void FillKindInfo(const KindStats& stats, uint64_t extent_bytes,
                  v1::KindInfo* out) {
  const KindSpec& spec = stats.kind.spec;
  out->set_kind_number(stats.kind.number.value());
  out->set_generation(stats.kind.generation);
  out->set_is_newest(stats.is_newest);
  out->set_label(spec.label);
  out->set_identity(spec.identity);
  if (spec.ns.extra_key.has_value()) out->set_extra_key(*spec.ns.extra_key);
  out->set_has_cache_salt(spec.ns.cache_salt.has_value());
  out->set_key_bytes(spec.key_bytes);
  out->set_shards(spec.shards);
  out->set_block_bytes(stats.block_bytes);
  out->set_sessions(stats.open_sessions);
  out->set_memory_bytes(stats.extents * extent_bytes);
  out->set_evictable_blocks(stats.ready_blocks - stats.locked_blocks);
  out->set_protected_blocks(stats.locked_blocks);
  out->set_reserved_blocks(stats.written_blocks);
  out->set_free_blocks(stats.free_blocks);
  out->set_hits(stats.counters.hits);
  out->set_misses(stats.counters.misses);
  out->set_pending(stats.counters.pending);
  out->set_published_blocks(stats.counters.published);
  out->set_evicted_blocks(stats.counters.evicted_blocks());
  out->set_no_room(stats.counters.no_room);
  out->set_overdue(stats.counters.overdue);
}

v1::BlockFate OnWire(BlockFate fate) {
  switch (fate) {
    case BlockFate::kReady:
      return v1::BLOCK_FATE_READY;
    case BlockFate::kPending:
      return v1::BLOCK_FATE_PENDING;
    case BlockFate::kOverdue:
      return v1::BLOCK_FATE_OVERDUE;
    case BlockFate::kEvicted:
      return v1::BLOCK_FATE_EVICTED;
    case BlockFate::kNeverStored:
      return v1::BLOCK_FATE_NEVER_STORED;
  }
  return v1::BLOCK_FATE_UNSPECIFIED;
}

v1::BlockEviction OnWire(BlockEviction reason) {
  switch (reason) {
    case BlockEviction::kRoom:
      return v1::BLOCK_EVICTION_ROOM;
    case BlockEviction::kExtent:
      return v1::BLOCK_EVICTION_EXTENT;
    case BlockEviction::kReset:
      return v1::BLOCK_EVICTION_KIND_ENDED;
  }
  return v1::BLOCK_EVICTION_UNSPECIFIED;
}

}  // namespace

absl::StatusOr<KindSpec> KindSpecOf(const v1::KindSpec& spec) {
  ASSIGN_OR_RETURN(NamespaceKey ns, NamespaceOf(spec.namespace_()));
  return KindSpec{.ns = std::move(ns),
                  .identity = spec.identity(),
                  .label = spec.label(),
                  .key_bytes = spec.key_bytes(),
                  .shard_bytes = spec.shard_bytes(),
                  .shards = spec.shards()};
}

absl::StatusOr<KindName> KindNameOf(const v1::KindSpec& spec) {
  ASSIGN_OR_RETURN(NamespaceKey ns, NamespaceOf(spec.namespace_()));
  return KindName{.ns = std::move(ns), .identity = spec.identity()};
}

void FillKind(const BlockKind& kind, v1::Kind* out) {
  out->set_number(kind.number.value());
  if (kind.number == KindNumber()) return;
  out->set_generation(kind.generation);
  out->set_shard_stride(kind.shard_stride);
  v1::KindSpec* spec = out->mutable_spec();
  if (kind.spec.ns != NamespaceKey()) {
    FillNamespace(kind.spec.ns, spec->mutable_namespace_());
  }
  spec->set_identity(kind.spec.identity);
  spec->set_label(kind.spec.label);
  spec->set_key_bytes(kind.spec.key_bytes);
  spec->set_shard_bytes(kind.spec.shard_bytes);
  spec->set_shards(kind.spec.shards);
}

absl::StatusOr<std::vector<BlockKeys>> BlockKeysOf(
    const google::protobuf::RepeatedPtrField<v1::BlockKeys>& keys) {
  std::vector<BlockKeys> plain;
  plain.reserve(static_cast<size_t>(keys.size()));
  for (const v1::BlockKeys& each : keys) {
    ASSIGN_OR_RETURN(const BlockShape shape, ShapeOf(each.shape()));
    plain.push_back({.kind = KindNumber(each.kind()),
                     .keys = each.keys(),
                     .before = each.before(),
                     .shape = shape,
                     .window = each.window()});
  }
  return plain;
}

void AppendPlaces(std::span<const BlockPlace> places, PackedIds* out) {
  const int count = static_cast<int>(places.size());
  out->Reserve(out->size() + count);
  std::transform(places.begin(), places.end(), out->AddNAlreadyReserved(count),
                 [](BlockPlace place) { return place.value(); });
}

void FillBlockFigures(const BlockStats& stats, v1::BlockFigures* out) {
  out->set_memory_bytes(stats.memory_bytes);
  out->set_used_bytes((stats.extents - stats.free_extents) *
                      stats.extent_bytes);
  out->set_kinds(static_cast<uint32_t>(stats.kinds.size()));
  out->set_locks(stats.locks);
  out->set_reservations(stats.reservations);
  out->set_quarantined_blocks(stats.quarantined_blocks);
  KindCounters sum = stats.ended_kinds;
  for (const KindStats& kind : stats.kinds) {
    out->set_evictable_blocks(out->evictable_blocks() + kind.ready_blocks -
                              kind.locked_blocks);
    out->set_protected_blocks(out->protected_blocks() + kind.locked_blocks);
    out->set_reserved_blocks(out->reserved_blocks() + kind.written_blocks);
    sum += kind.counters;
  }
  out->set_hits(sum.hits);
  out->set_misses(sum.misses);
  out->set_published_blocks(sum.published);
  out->set_evicted_blocks(sum.evicted_blocks());
  out->set_recoveries(stats.recoveries);
  for (const BlockQuotaStats& from : stats.quotas) {
    v1::BlockQuota* const quota = out->add_quotas();
    quota->set_name(from.quota.name);
    quota->set_floor_bytes(from.quota.floor_bytes);
    if (from.quota.cap_bytes.has_value()) {
      quota->set_cap_bytes(*from.quota.cap_bytes);
    }
    quota->set_used_bytes(from.used_bytes);
  }
}

void FillKinds(const BlockStats& stats, uint32_t limit,
               v1::ListKindsResponse* out) {
  for (const KindStats* kind : LargestKinds(stats, limit)) {
    FillKindInfo(*kind, stats.extent_bytes, out->add_kinds());
  }
  out->set_total(static_cast<uint32_t>(stats.kinds.size()));
}

void FillBlockExplanation(const BlockExplanation& explanation,
                          v1::ExplainBlockResponse* out) {
  out->set_fate(OnWire(explanation.fate));
  out->set_locks(explanation.locks);
  out->set_followers(explanation.followers);
  out->set_age_ms(
      static_cast<uint64_t>(absl::ToInt64Milliseconds(explanation.age)));
  if (explanation.eviction.has_value()) {
    out->set_evicted_for(OnWire(*explanation.eviction));
  }
  out->set_session_number(explanation.writer.value());
  out->set_client_name(explanation.client_name);
}

}  // namespace pando
