#include "clients/cpp/src/convert.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace pando {
inline namespace client {
namespace {

absl::StatusOr<DType> FromProto(v1::DType dtype) {
  switch (dtype) {
    case v1::DTYPE_FLOAT32:
      return DType::kFloat32;
    case v1::DTYPE_FLOAT16:
      return DType::kFloat16;
    case v1::DTYPE_BFLOAT16:
      return DType::kBFloat16;
    case v1::DTYPE_FLOAT8_E4M3:
      return DType::kFloat8E4M3;
    case v1::DTYPE_FLOAT8_E5M2:
      return DType::kFloat8E5M2;
    case v1::DTYPE_OPAQUE:
      return DType::kOpaque;
    default:
      return absl::UnimplementedError(absl::StrCat(
          "layout.dtype: ", static_cast<int>(dtype), " is unknown here"));
  }
}

v1::DType ToProto(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return v1::DTYPE_FLOAT32;
    case DType::kFloat16:
      return v1::DTYPE_FLOAT16;
    case DType::kBFloat16:
      return v1::DTYPE_BFLOAT16;
    case DType::kFloat8E4M3:
      return v1::DTYPE_FLOAT8_E4M3;
    case DType::kFloat8E5M2:
      return v1::DTYPE_FLOAT8_E5M2;
    case DType::kOpaque:
      return v1::DTYPE_OPAQUE;
  }
  return v1::DTYPE_UNSPECIFIED;
}

absl::StatusOr<LayoutOrder> FromProto(v1::LayoutOrder order) {
  switch (order) {
    case v1::LAYOUT_ORDER_LAYER_FIRST:
      return LayoutOrder::kLayerFirst;
    case v1::LAYOUT_ORDER_PAGE_FIRST:
      return LayoutOrder::kPageFirst;
    default:
      return absl::UnimplementedError(absl::StrCat(
          "layout.order: ", static_cast<int>(order), " is unknown here"));
  }
}

absl::StatusOr<KvLayout> FromProto(const v1::KvLayout& layout) {
  ASSIGN_OR_RETURN(const DType dtype, FromProto(layout.dtype()));
  ASSIGN_OR_RETURN(const LayoutOrder order, FromProto(layout.order()));
  return KvLayout{.layers = layout.layers(),
                  .kv_planes = layout.kv_planes(),
                  .heads = layout.heads(),
                  .head_size = layout.head_size(),
                  .dtype = dtype,
                  .page_tokens = layout.page_tokens(),
                  .order = order,
                  .layer_stride = layout.layer_stride(),
                  .page_stride = layout.page_stride(),
                  .kv_stride = layout.kv_stride(),
                  .token_stride = layout.token_stride(),
                  .head_stride = layout.head_stride(),
                  .piece_bytes = layout.piece_bytes(),
                  .page_format = layout.page_format()};
}

}  // namespace

absl::StatusOr<PoolDescription> FromProto(const v1::PoolDescription& pool) {
  ASSIGN_OR_RETURN(const KvLayout layout, FromProto(pool.layout()));
  PoolDescription out{.capacity_pages = pool.capacity_pages(),
                      .layout = layout,
                      .shards = {},
                      .model = pool.model(),
                      .fingerprint = pool.fingerprint(),
                      .page_bytes = pool.page_bytes(),
                      .is_open = pool.is_open(),
                      .is_absent = pool.is_absent()};
  for (const v1::Shard& shard : pool.shards()) {
    out.shards.push_back(
        {.device = shard.device(), .size_bytes = shard.size_bytes()});
  }
  return out;
}

void ToProto(const KvLayout& layout, v1::KvLayout* out) {
  out->set_layers(layout.layers);
  out->set_kv_planes(layout.kv_planes);
  out->set_heads(layout.heads);
  out->set_head_size(layout.head_size);
  out->set_dtype(ToProto(layout.dtype));
  out->set_page_tokens(layout.page_tokens);
  out->set_order(layout.order == LayoutOrder::kLayerFirst
                     ? v1::LAYOUT_ORDER_LAYER_FIRST
                     : v1::LAYOUT_ORDER_PAGE_FIRST);
  out->set_piece_bytes(layout.piece_bytes);
  out->set_page_format(layout.page_format);
}

Gauges FromGaugePage(const lane::Gauges& gauges) {
  return {.pages = {.free = gauges.free,
                    .reserved = gauges.reserved,
                    .evictable = gauges.evictable,
                    .protected_pages = gauges.protected_pages,
                    .quarantined = gauges.quarantined,
                    .padding = 1,
                    .capacity = gauges.capacity},
          .epoch = gauges.epoch,
          .is_draining = gauges.draining != 0,
          .eviction_policy = std::string(lane::PolicyOf(gauges))};
}

PendingOutcome FromProto(v1::PendingOutcome outcome) {
  switch (outcome) {
    case v1::PENDING_OUTCOME_NOT_AWAITED:
      return PendingOutcome::kNotAwaited;
    case v1::PENDING_OUTCOME_PUBLISHED:
      return PendingOutcome::kPublished;
    case v1::PENDING_OUTCOME_GIVEN_UP:
      return PendingOutcome::kGivenUp;
    case v1::PENDING_OUTCOME_OWNER_LOST:
      return PendingOutcome::kOwnerLost;
    case v1::PENDING_OUTCOME_TIMED_OUT:
      return PendingOutcome::kTimedOut;
    case v1::PENDING_OUTCOME_LOADED:
      return PendingOutcome::kLoaded;
    default:
      return PendingOutcome::kNone;
  }
}

Tier FromProto(v1::Tier tier) {
  switch (tier) {
    case v1::TIER_DISK:
      return Tier::kDisk;
    case v1::TIER_HOST:
      return Tier::kHost;
    case v1::TIER_SHARED:
      return Tier::kShared;
    default:
      return Tier::kNone;
  }
}

v1::Load ToProto(Load load) {
  switch (load) {
    case Load::kServerPolicy:
      return v1::LOAD_UNSPECIFIED;
    case Load::kNo:
      return v1::LOAD_NO;
    case Load::kStart:
      return v1::LOAD_START;
  }
  return v1::LOAD_UNSPECIFIED;
}

EvictionReason FromProto(v1::EvictionReason reason) {
  switch (reason) {
    case v1::EVICTION_REASON_ALLOCATION:
      return EvictionReason::kAllocation;
    case v1::EVICTION_REASON_REQUEST:
      return EvictionReason::kRequest;
    case v1::EVICTION_REASON_WATERMARK:
      return EvictionReason::kWatermark;
    case v1::EVICTION_REASON_QUOTA:
      return EvictionReason::kQuota;
    case v1::EVICTION_REASON_FLUSH:
      return EvictionReason::kFlush;
    default:
      return EvictionReason::kUnknown;
  }
}

bool IsSet(const Namespace& ns) {
  return ns.extra_key.has_value() || ns.cache_salt.has_value() || ns.bigram;
}

void ToProto(const Namespace& ns, v1::Namespace* out) {
  if (ns.extra_key) out->set_extra_key(*ns.extra_key);
  if (ns.cache_salt) out->set_cache_salt(*ns.cache_salt);
  if (ns.bigram) out->set_bigram(true);
}

}  // namespace client
}  // namespace pando
