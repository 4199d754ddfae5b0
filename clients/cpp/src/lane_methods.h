// The calls that a lane carries, and how much room their answers may need.
#ifndef PANDO_CLIENTS_CPP_SRC_LANE_METHODS_H_
#define PANDO_CLIENTS_CPP_SRC_LANE_METHODS_H_

#include <cstddef>
#include <cstdint>

#include "base/methods.h"
#include "clients/lane/answer_room.h"
#include "lane/layout.h"
#include "pando/v1/data_path.pb.h"

namespace pando {
inline namespace client {

// Gives the method that takes requests of this type on a lane.
template <typename Request>
struct LaneMethodOf {};
#define PANDO_METHOD(number, field, service, name, role, kind)   \
  template <>                                                    \
  struct LaneMethodOf<v1::name##Request> {                       \
    static constexpr lane::Method value = lane::Method::k##name; \
  };
PANDO_DATA_PATH_METHODS(PANDO_METHOD)
#undef PANDO_METHOD

// Holds if calls with requests of this type can be made on a lane.
template <typename Request>
concept OnLane = requires {
  LaneMethodOf<Request>::value;
};

// Returns the room in bytes for the answer of a call. There is an overload for
// each method whose answers may be longer than this.
template <OnLane Request>
size_t AnswerBytesOf(const Request&, uint32_t) {
  return lane::kSmallAnswerBytes;
}

inline size_t BytesOfPages(size_t pages) {
  return lane::kSmallAnswerBytes + pages * lane::kPageAnswerBytes;
}

inline size_t AnswerBytesOf(const v1::MatchPrefixRequest& request,
                            uint32_t page_tokens) {
  const size_t tokens =
      static_cast<size_t>(request.tokens_size()) + request.reserve_tokens();
  return BytesOfPages(tokens / page_tokens + 2);
}
inline size_t AnswerBytesOf(const v1::MatchPrefixesRequest& request, uint32_t) {
  return lane::kSmallAnswerBytes +
         lane::kScoreAnswerBytes * static_cast<size_t>(request.queries_size());
}
inline size_t AnswerBytesOf(const v1::InsertRequest& request, uint32_t) {
  return BytesOfPages(static_cast<size_t>(request.page_ids_size()));
}
inline size_t AnswerBytesOf(const v1::AllocatePagesRequest& request, uint32_t) {
  return BytesOfPages(request.pages());
}
inline size_t AnswerBytesOf(const v1::GetStatsRequest&, uint32_t) {
  return lane::kStatsAnswerBytes;
}

template <typename BlockKeys>
size_t BytesOfPlaces(const BlockKeys& keys) {
  constexpr size_t kLeastKeyBytes = 16;
  size_t bytes = 0;
  for (const v1::BlockKeys& each : keys) bytes += each.keys().size();
  return BytesOfPages(bytes / kLeastKeyBytes);
}
inline size_t AnswerBytesOf(const v1::LookupBlocksRequest& request, uint32_t) {
  return BytesOfPlaces(request.keys());
}
inline size_t AnswerBytesOf(const v1::AcquireBlocksRequest& request, uint32_t) {
  return BytesOfPlaces(request.keys());
}
inline size_t AnswerBytesOf(const v1::ReserveBlocksRequest& request, uint32_t) {
  return BytesOfPlaces(request.keys());
}
inline size_t AnswerBytesOf(const v1::ResetKindsRequest& request, uint32_t) {
  // A kind with the longest namespace, identity and label takes less than this.
  constexpr size_t kKindBytes = 1024;
  return lane::kSmallAnswerBytes +
         kKindBytes * static_cast<size_t>(request.kinds_size());
}

// The method of a call on a lane, and the room for its answer.
struct LaneCallShape {
  lane::Method method;
  size_t answer_bytes;
};

template <OnLane Request>
LaneCallShape ShapeOf(const Request& request, uint32_t page_tokens) {
  return {LaneMethodOf<Request>::value, AnswerBytesOf(request, page_tokens)};
}

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_LANE_METHODS_H_
