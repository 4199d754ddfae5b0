// Which calls a lane carries, and how much room their answers may need: enough,
// as a rule. An answer that needs more is asked for again over gRPC.
#ifndef PANDO_CLIENTS_CPP_SRC_LANE_METHODS_H_
#define PANDO_CLIENTS_CPP_SRC_LANE_METHODS_H_

#include <cstddef>
#include <cstdint>

#include "lane/layout.h"
#include "pando/v1/admin.pb.h"
#include "pando/v1/pool.pb.h"
#include "pando/v1/prefix_cache.pb.h"

namespace pando {
inline namespace client {

struct LaneCallShape {
  lane::Method method;
  size_t answer_bytes;
};

// Enough for an error, or an answer without lists.
inline constexpr size_t kSmallAnswerBytes = 2048;

inline constexpr size_t BytesOfPages(size_t pages) {
  return kSmallAnswerBytes + pages * sizeof(uint32_t);
}

inline LaneCallShape ShapeOf(const v1::MatchPrefixRequest& request,
                             uint32_t page_tokens) {
  const size_t tokens =
      static_cast<size_t>(request.tokens_size()) + request.reserve_tokens();
  return {lane::Method::kMatchPrefix, BytesOfPages(tokens / page_tokens + 2)};
}
inline LaneCallShape ShapeOf(const v1::MatchPrefixesRequest& request,
                             uint32_t) {
  constexpr size_t kScoreBytes = 16;
  return {lane::Method::kMatchPrefixes,
          kSmallAnswerBytes + kScoreBytes * request.queries_size()};
}
inline LaneCallShape ShapeOf(const v1::InsertRequest& request, uint32_t) {
  return {lane::Method::kInsert, BytesOfPages(request.page_ids_size())};
}
inline LaneCallShape ShapeOf(const v1::LockRequest&, uint32_t) {
  return {lane::Method::kLock, kSmallAnswerBytes};
}
inline LaneCallShape ShapeOf(const v1::UnlockRequest&, uint32_t) {
  return {lane::Method::kUnlock, kSmallAnswerBytes};
}
inline LaneCallShape ShapeOf(const v1::AllocatePagesRequest& request,
                             uint32_t) {
  return {lane::Method::kAllocatePages, BytesOfPages(request.pages())};
}
inline LaneCallShape ShapeOf(const v1::FreePagesRequest&, uint32_t) {
  return {lane::Method::kFreePages, kSmallAnswerBytes};
}
inline LaneCallShape ShapeOf(const v1::GetStatsRequest&, uint32_t) {
  constexpr size_t kStatsBytes = 16 << 10;
  return {lane::Method::kGetStats, kStatsBytes};
}

// Whether calls with such a request can be made on a lane.
template <typename Request>
concept OnLane = requires(const Request& request) {
  ShapeOf(request, 1);
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_LANE_METHODS_H_
