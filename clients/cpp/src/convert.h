// Converts the plain structs of the public headers to and from messages.
#ifndef PANDO_CLIENTS_CPP_SRC_CONVERT_H_
#define PANDO_CLIENTS_CPP_SRC_CONVERT_H_

#include <google/protobuf/repeated_field.h>

#include <cstring>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "lane/gauge_page.h"
#include "pando/events.h"
#include "pando/pool.h"
#include "pando/requests.h"
#include "pando/stats.h"
#include "pando/types.h"
#include "pando/v1/admin.pb.h"
#include "pando/v1/prefix_cache.pb.h"
#include "pando/v1/types.pb.h"

namespace pando {
inline namespace client {

// Fails if the server names a data type or an order that this library does not
// know.
absl::StatusOr<PoolDescription> FromProto(const v1::PoolDescription& pool);
// Leaves the strides out, because they follow from the size of the pool.
void ToProto(const KvLayout& layout, v1::KvLayout* out);
Stats FromProto(const v1::GetStatsResponse& stats);
PendingOutcome FromProto(v1::PendingOutcome outcome);
Tier FromProto(v1::Tier tier);
v1::Load ToProto(Load load);
EvictionReason FromProto(v1::EvictionReason reason);
Gauges FromGaugePage(const lane::Gauges& gauges);

inline PrefixHandle FromProto(const v1::PrefixHandle& handle) {
  return {.epoch = handle.epoch(),
          .node = handle.node(),
          .tokens = handle.tokens()};
}
inline void ToProto(const PrefixHandle& handle, v1::PrefixHandle* out) {
  out->set_epoch(handle.epoch);
  out->set_node(handle.node);
  out->set_tokens(handle.tokens);
}

bool IsSet(const Namespace& ns);
void ToProto(const Namespace& ns, v1::Namespace* out);

// Fills in `namespace` and `after` of a request, where they are set.
template <typename Request>
void FillPlace(const Namespace& ns, const PrefixHandle& after,
               Request& request) {
  if (IsSet(ns)) ToProto(ns, request.mutable_namespace_());
  if (after.tokens != 0) ToProto(after, request.mutable_after());
}

// Copies the values in one piece. REQUIRES: *out is empty.
inline void Fill(std::span<const uint32_t> from,
                 google::protobuf::RepeatedField<uint32_t>* out) {
  if (from.empty()) return;
  const int count = static_cast<int>(from.size());
  out->Reserve(count);
  std::memcpy(out->AddNAlreadyReserved(count), from.data(), from.size_bytes());
}

inline std::vector<uint32_t> ToVector(
    const google::protobuf::RepeatedField<uint32_t>& from) {
  return {from.begin(), from.end()};
}

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_CONVERT_H_
