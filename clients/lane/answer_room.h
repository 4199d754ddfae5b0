#ifndef PANDO_CLIENTS_LANE_ANSWER_ROOM_H_
#define PANDO_CLIENTS_LANE_ANSWER_ROOM_H_

#include <cstddef>
#include <cstdint>

namespace pando::lane {

// The room that a worker reserves for the answer of a call on a lane. It is
// nearly always enough; an answer that needs more is asked for again over gRPC.

// The room for an error, or for an answer without lists.
inline constexpr size_t kSmallAnswerBytes = 2048;
// The room for an entry of a list of page ids (packed fixed32).
inline constexpr size_t kPageAnswerBytes = sizeof(uint32_t);
// A pando.v1.PrefixScore, whatever it says: five fields of up to 6 bytes.
inline constexpr size_t kScoreAnswerBytes = 24;
// The room for a GetStatsResponse with a few quota classes that have short
// names.
inline constexpr size_t kStatsAnswerBytes = 16 << 10;

}  // namespace pando::lane

#endif  // PANDO_CLIENTS_LANE_ANSWER_ROOM_H_
