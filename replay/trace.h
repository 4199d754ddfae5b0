// Recorded workloads, and the tokens that stand for them.
#ifndef PANDO_REPLAY_TRACE_H_
#define PANDO_REPLAY_TRACE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace pando::replay {

using Token = uint32_t;

struct TraceRequest {
  uint32_t input_tokens = 0;
  uint32_t output_tokens = 0;
  // One id for each block of the input; the last block may be partial. An id
  // names the whole prefix up to the end of its block.
  std::vector<uint32_t> block_ids = {};
};

struct Trace {
  // The number of tokens in a whole block.
  uint32_t block_tokens = 0;
  // In the order of their times.
  std::vector<TraceRequest> requests = {};

  // Returns how many tokens the request has up to the end of its block `index`,
  // counted from 0.
  uint32_t EndOfBlock(const TraceRequest& request, size_t index) const {
    return static_cast<uint32_t>(
        std::min<size_t>((index + 1) * block_tokens, request.input_tokens));
  }
};

// Reads JSON lines, plain or gzipped; at most `max_requests` requests, zero for
// all. There are two kinds of trace, told apart by the first line:
//
// A line is a request, with the fields input_length, output_length and hash_ids
// (blocks of 512 tokens).
//
// A line is a conversation, with the fields block (tokens of a block) and
// requests, each with t (seconds since the conversation began), in and out
// (tokens) and h (the whole blocks of the input, as runs [first id, count]).
// Each conversation begins a minute after the one before it, and requests are
// merged by time. Ids are local to their conversation, and become unique here;
// tokens after the last whole block, which have no id, get one that no other
// request has.
absl::StatusOr<Trace> ReadTrace(const std::string& path, size_t max_requests);

struct HitTokens {
  uint64_t input = 0;
  uint64_t hit = 0;
  double Rate() const {
    return input == 0 ? 0 : static_cast<double>(hit) / input;
  }
};

// Returns the hits of a cache without limit: for each request, the longest
// prefix of blocks that were seen before.
HitTokens UnlimitedCacheHits(const Trace& trace);

// Returns the hits of an LRU cache of blocks with room for `capacity_tokens`
// tokens. Of the blocks of one request, the last one is evicted first.
HitTokens BlockLruHits(const Trace& trace, uint64_t capacity_tokens);

// Returns for each request whether no later request continues its prompt, that
// is, whether none has the last whole block of its input. Only a trace shows
// this; it stands for the knowledge of engines about the ends of conversations.
std::vector<bool> FindEnds(const Trace& trace);

// Sets `tokens` to the input of `request`. Token number i of block b is the
// upper half of splitmix64(b * block_tokens + i), so that it is always the
// same.
void MakeTokens(const Trace& trace, const TraceRequest& request,
                std::vector<Token>* tokens);

}  // namespace pando::replay

#endif  // PANDO_REPLAY_TRACE_H_
