#include "service/handlers/wire.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/cache_counters.h"
#include "base/status_macros.h"
#include "core/requests/errors.h"

namespace pando {
namespace {

absl::Status CheckNamespaceField(const char* name, const std::string& value) {
  if (value.size() <= kMaxNamespaceFieldBytes) return absl::OkStatus();
  return MakeError(
      Reason::kInvalidField,
      absl::StrCat("namespace.", name, " has ", value.size(),
                   " bytes; the limit is ", kMaxNamespaceFieldBytes));
}

v1::DType DTypeOf(DType dtype) {
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

void FillLayout(const KvLayout& layout, v1::KvLayout* out) {
  out->set_layers(layout.layers);
  out->set_kv_planes(layout.kv_planes);
  out->set_heads(layout.heads);
  out->set_head_size(layout.head_size);
  out->set_dtype(DTypeOf(layout.dtype));
  out->set_page_tokens(layout.page_tokens);
  out->set_order(layout.order == LayoutOrder::kLayerFirst
                     ? v1::LAYOUT_ORDER_LAYER_FIRST
                     : v1::LAYOUT_ORDER_PAGE_FIRST);
  out->set_layer_stride(layout.layer_stride);
  out->set_page_stride(layout.page_stride);
  out->set_kv_stride(layout.kv_stride);
  out->set_token_stride(layout.token_stride);
  out->set_head_stride(layout.head_stride);
  out->set_piece_bytes(layout.piece_bytes);
  out->set_page_format(layout.page_format);
}

void FillCounters(const CacheCounters& from, v1::CacheCounters* counters) {
#define PANDO_COUNTER(name) counters->set_##name(from.name);
  PANDO_FOR_EACH_CACHE_COUNTER(PANDO_COUNTER)
#undef PANDO_COUNTER
}

void FillQuotaClass(const QuotaClassStats& from, v1::QuotaClass* out) {
  out->set_name(from.name);
  out->set_floor_pages(from.floor_pages);
  if (from.cap_pages.has_value()) out->set_cap_pages(*from.cap_pages);
  out->set_reserved_pages(from.reserved_pages);
  out->set_cached_pages(from.cached_pages);
  out->set_max_retention_seconds(from.max_retention_seconds);
  out->set_spared_leaves(from.spared_leaves);
}

}  // namespace

absl::StatusOr<std::span<const Token>> TokensOf(const PackedIds& tokens,
                                                uint32_t max_tokens) {
  if (static_cast<uint32_t>(tokens.size()) > max_tokens) {
    return MakeError(Reason::kTooManyTokens,
                     absl::StrCat("tokens has ", tokens.size(),
                                  " entries; the limit is ", max_tokens));
  }
  return std::span<const Token>(tokens.data(), tokens.size());
}

std::vector<PageId> PagesOf(const PackedIds& ids) {
  std::vector<PageId> pages;
  pages.reserve(ids.size());
  for (uint32_t id : ids) pages.emplace_back(id);
  return pages;
}

void AppendPages(std::span<const PageId> pages, PackedIds* ids) {
  const int count = static_cast<int>(pages.size());
  ids->Reserve(ids->size() + count);
  // Writes into one contiguous range, so that compilers copy many at a time.
  std::transform(pages.begin(), pages.end(), ids->AddNAlreadyReserved(count),
                 [](PageId page) { return page.value(); });
}

absl::StatusOr<NamespaceKey> NamespaceOf(const v1::Namespace& ns) {
  NamespaceKey key;
  if (ns.has_extra_key()) key.extra_key = ns.extra_key();
  if (ns.has_cache_salt()) key.cache_salt = ns.cache_salt();
  key.bigram = ns.bigram();
  RETURN_IF_ERROR(CheckNamespaceField("extra_key", ns.extra_key()));
  RETURN_IF_ERROR(CheckNamespaceField("cache_salt", ns.cache_salt()));
  return key;
}

absl::StatusOr<PrefixHandle> HandleOf(const v1::PrefixHandle& handle,
                                      uint64_t epoch) {
  const PrefixHandle plain{.node = handle.node(), .tokens = handle.tokens()};
  if (handle.epoch() == epoch && plain != PrefixHandle()) return plain;
  return MakeError(Reason::kHandleGone,
                   "the handle is not of this boot of the server; send the "
                   "whole prompt");
}

void FillHandle(PrefixHandle handle, uint64_t epoch, v1::PrefixHandle* out) {
  out->set_epoch(epoch);
  out->set_node(handle.node);
  out->set_tokens(handle.tokens);
}

absl::StatusOr<KvShape> ShapeOf(const v1::KvLayout& layout) {
  KvShape shape = {.layers = layout.layers(),
                   .kv_planes = layout.kv_planes(),
                   .heads = layout.heads(),
                   .head_size = layout.head_size(),
                   .page_tokens = layout.page_tokens(),
                   .page_format = layout.page_format()};
  if (layout.order() == v1::LAYOUT_ORDER_PAGE_FIRST) {
    shape.order = LayoutOrder::kPageFirst;
  } else if (layout.order() != v1::LAYOUT_ORDER_LAYER_FIRST) {
    return MakeError(Reason::kInvalidField,
                     absl::StrFormat("layout.order is %d; must be 1 or 2",
                                     static_cast<int>(layout.order())));
  }
  if (layout.dtype() == v1::DTYPE_OPAQUE) {
    if (layout.piece_bytes() == 0) {
      return MakeError(Reason::kInvalidField,
                       "layout.piece_bytes is 0; must be at least 1 where the "
                       "dtype is opaque");
    }
    shape.opaque_bytes = layout.piece_bytes();
    return shape;
  }
  for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16,
                      DType::kFloat8E4M3, DType::kFloat8E5M2}) {
    if (DTypeOf(dtype) != layout.dtype()) continue;
    shape.dtype = dtype;
    return shape;
  }
  return MakeError(Reason::kInvalidField,
                   absl::StrFormat("layout.dtype is %d, which is none",
                                   static_cast<int>(layout.dtype())));
}

void FillPool(const KvPool& pool, std::string_view model,
              v1::PoolDescription* out) {
  out->set_capacity_pages(pool.capacity_pages());
  FillLayout(pool.layout(), out->mutable_layout());
  for (const KvShard& shard : pool.shards()) {
    v1::Shard* s = out->add_shards();
    s->set_index(shard.index);
    s->set_device(shard.device);
    s->set_size_bytes(shard.size_bytes);
  }
  out->set_model(std::string(model));
  out->set_fingerprint(Fingerprint(pool.layout(), model));
  out->set_page_bytes(PageBytes(pool.layout()));
}

v1::EvictionReason ReasonOnWire(EvictionReason reason) {
  switch (reason) {
    case EvictionReason::kAllocation:
      return v1::EVICTION_REASON_ALLOCATION;
    case EvictionReason::kRequest:
      return v1::EVICTION_REASON_REQUEST;
    case EvictionReason::kWatermark:
      return v1::EVICTION_REASON_WATERMARK;
    case EvictionReason::kQuota:
      return v1::EVICTION_REASON_QUOTA;
    case EvictionReason::kFlush:
      return v1::EVICTION_REASON_FLUSH;
  }
  return v1::EVICTION_REASON_UNSPECIFIED;
}

v1::Tier TierOnWire(KeptIn tier) {
  switch (tier) {
    case KeptIn::kNowhere:
      return v1::TIER_UNSPECIFIED;
    case KeptIn::kHost:
      return v1::TIER_HOST;
    case KeptIn::kDisk:
      return v1::TIER_DISK;
    case KeptIn::kShared:
      return v1::TIER_SHARED;
  }
  return v1::TIER_UNSPECIFIED;
}

void FillStats(const CacheStats& stats, v1::GetStatsResponse* out) {
  v1::PageStates* pages = out->mutable_pages();
  pages->set_free(stats.pages.free);
  pages->set_reserved(stats.pages.reserved);
  pages->set_evictable(stats.pages.evictable);
  pages->set_protected_(stats.pages.protected_);
  pages->set_quarantined(stats.pages.quarantined);
  pages->set_padding(stats.pages.padding);
  pages->set_capacity(stats.pages.capacity);

  FillCounters(stats.counters, out->mutable_counters());
  out->set_sessions(stats.sessions);
  out->set_locks(stats.locks);
  out->set_nodes(stats.nodes);
  out->set_namespaces(stats.namespaces);
  out->set_waiting_matches(stats.waits);
  out->set_held_pages(stats.held_pages);
  out->set_page_recoveries(stats.recoveries);
  out->set_eviction_policy(
      std::string(EvictionPolicyName(stats.eviction_policy)));
  if (stats.reuse.has_value()) {
    v1::ReuseStats* reuse = out->mutable_reuse();
    reuse->set_requested_pages(stats.reuse->requested_pages);
    reuse->set_hit_pages(stats.reuse->hit_pages);
    reuse->set_lru_hit_pages(stats.reuse->lru_hit_pages);
  }
  for (const QuotaClassStats& quota : stats.quota_classes) {
    FillQuotaClass(quota, out->add_quota_classes());
  }
}

}  // namespace pando
