#ifndef PANDO_SERVICE_HANDLERS_WIRE_H_
#define PANDO_SERVICE_HANDLERS_WIRE_H_

#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "core/journal/stats.h"
#include "core/requests/eviction_reason.h"
#include "core/requests/namespace_key.h"
#include "core/requests/requests.h"
#include "gpu/kv_pool.h"
#include "pando/v1/admin.pb.h"
#include "pando/v1/types.pb.h"
#include "tiers/prefix_loader.h"

namespace pando {

// Converts between messages and the plain types of core and gpu.

using PackedIds = google::protobuf::RepeatedField<uint32_t>;

// Returns a view of the message's tokens, which is valid as long as the
// message. Returns TOO_MANY_TOKENS if there are more than `max_tokens`.
absl::StatusOr<std::span<const Token>> TokensOf(const PackedIds& tokens,
                                                uint32_t max_tokens);

std::vector<PageId> PagesOf(const PackedIds& ids);
void AppendPages(std::span<const PageId> pages, PackedIds* ids);

// Returns INVALID_FIELD if a field has more than 256 bytes.
absl::StatusOr<NamespaceKey> NamespaceOf(const v1::Namespace& ns);

// Returns HANDLE_GONE if the handle is not of this `epoch`.
absl::StatusOr<PrefixHandle> HandleOf(const v1::PrefixHandle& handle,
                                      uint64_t epoch);
void FillHandle(PrefixHandle handle, uint64_t epoch, v1::PrefixHandle* out);
// Returns the handle after which the tokens of a request begin; a default one
// if they begin at the start of the prompt. Returns HANDLE_GONE as HandleOf
// does.
template <typename Message>
absl::StatusOr<PrefixHandle> AfterOf(const Message& message, uint64_t epoch) {
  if (!message.has_after()) return PrefixHandle();
  return HandleOf(message.after(), epoch);
}
template <typename Message>
std::optional<uint32_t> MaxTokensOf(const Message& message) {
  if (!message.has_max_tokens()) return std::nullopt;
  return message.max_tokens();
}

// Converts the shape of a layout; strides are not part of it. Returns
// INVALID_FIELD for an order or dtype that is unknown.
absl::StatusOr<KvShape> ShapeOf(const v1::KvLayout& layout);
void FillPool(const KvPool& pool, std::string_view model,
              v1::PoolDescription* out);
v1::EvictionReason ReasonOnWire(EvictionReason reason);

v1::Tier TierOnWire(KeptIn tier);
// Fills in how many tokens the tiers keep beyond the match, and the slowest
// tier that has some of them. Leaves the fields unset if they keep no more.
template <typename Message>
void FillLoadable(const Kept& kept, uint32_t matched_tokens, Message& message) {
  if (kept.tokens <= matched_tokens) return;
  message.set_loadable_tokens(kept.tokens - matched_tokens);
  message.set_loadable_tier(TierOnWire(kept.slowest));
}

void FillStats(const CacheStats& stats, v1::GetStatsResponse* out);

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_WIRE_H_
