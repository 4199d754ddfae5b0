// Recorded workloads, and the tokens that stand for them.
#ifndef PANDO_BENCH_REPLAY_TRACE_H_
#define PANDO_BENCH_REPLAY_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace pando::replay {

// Tokens of one block of a trace; the last block of a request may be partial.
inline constexpr uint32_t kBlockTokens = 512;

struct TraceRequest {
  uint32_t input_tokens = 0;
  uint32_t output_tokens = 0;
  // One id for each block of the input. An id names the whole prefix up to and
  // with its block.
  std::vector<uint32_t> block_ids;
};

// Reads JSON lines with the fields input_length, output_length and hash_ids,
// plain or gzipped; at most `max_requests` of them, zero for all.
absl::StatusOr<std::vector<TraceRequest>> ReadTrace(const std::string& path,
                                                    size_t max_requests);

struct HitTokens {
  uint64_t input = 0;
  uint64_t hit = 0;
  double Rate() const {
    return input == 0 ? 0 : static_cast<double>(hit) / input;
  }
};

// What a cache that forgets nothing would hit: the longest prefix of blocks
// that were seen before.
HitTokens UnlimitedCacheHits(const std::vector<TraceRequest>& trace);

// Replaces `tokens` by the input of `request`. Token number i of block b is
// the upper half of splitmix64(b * 512 + i): the same everywhere and always.
void MakeTokens(const TraceRequest& request, std::vector<uint32_t>* tokens);

}  // namespace pando::replay

#endif  // PANDO_BENCH_REPLAY_TRACE_H_
