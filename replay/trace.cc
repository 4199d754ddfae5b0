#include "replay/trace.h"

#include <algorithm>
#include <list>
#include <unordered_map>
#include <unordered_set>

namespace pando::replay {
namespace {

uint64_t SplitMix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Returns how many tokens the leading blocks have that `cached` holds.
template <typename Set>
uint64_t PrefixIn(const Set& cached, const Trace& trace,
                  const TraceRequest& request) {
  const auto& ids = request.block_ids;
  const size_t blocks =
      std::ranges::find_if_not(
          ids, [&](uint32_t id) { return cached.contains(id); }) -
      ids.begin();
  return blocks == 0 ? 0 : trace.EndOfBlock(request, blocks - 1);
}

// An LRU cache of blocks. A block keeps the size with which it was first used.
class BlockLru {
 public:
  explicit BlockLru(uint64_t capacity) : capacity_(capacity) {}

  bool contains(uint32_t id) const { return places_.contains(id); }

  void Use(uint32_t id, uint32_t tokens) {
    const auto [place, is_new] = places_.try_emplace(id, order_.end());
    if (is_new) {
      place->second = order_.insert(order_.end(), {id, tokens});
      used_ += tokens;
    } else {
      order_.splice(order_.end(), order_, place->second);
    }
  }

  void EvictToCapacity() {
    while (used_ > capacity_) {
      used_ -= order_.front().tokens;
      places_.erase(order_.front().id);
      order_.pop_front();
    }
  }

 private:
  struct Block {
    uint32_t id;
    uint32_t tokens;
  };

  const uint64_t capacity_;
  uint64_t used_ = 0;
  std::list<Block> order_;  // the next to be evicted comes first
  std::unordered_map<uint32_t, std::list<Block>::iterator> places_;
};

}  // namespace

HitTokens UnlimitedCacheHits(const Trace& trace) {
  std::unordered_set<uint32_t> seen;
  HitTokens tokens;
  for (const TraceRequest& request : trace.requests) {
    tokens.hit += PrefixIn(seen, trace, request);
    tokens.input += request.input_tokens;
    seen.insert(request.block_ids.begin(), request.block_ids.end());
  }
  return tokens;
}

HitTokens BlockLruHits(const Trace& trace, uint64_t capacity_tokens) {
  BlockLru cache(capacity_tokens);
  HitTokens tokens;
  for (const TraceRequest& request : trace.requests) {
    tokens.hit += PrefixIn(cache, trace, request);
    tokens.input += request.input_tokens;
    for (size_t i = request.block_ids.size(); i-- > 0;) {
      const uint32_t begin = static_cast<uint32_t>(i) * trace.block_tokens;
      cache.Use(request.block_ids[i], trace.EndOfBlock(request, i) - begin);
    }
    cache.EvictToCapacity();
  }
  return tokens;
}

std::vector<bool> FindEnds(const Trace& trace) {
  std::unordered_set<uint32_t> later;
  std::vector<bool> ends(trace.requests.size());
  for (size_t i = trace.requests.size(); i-- > 0;) {
    const TraceRequest& request = trace.requests[i];
    const size_t whole_blocks = request.input_tokens / trace.block_tokens;
    ends[i] = whole_blocks == 0 ||
              !later.contains(request.block_ids[whole_blocks - 1]);
    later.insert(request.block_ids.begin(), request.block_ids.end());
  }
  return ends;
}

void MakeTokens(const Trace& trace, const TraceRequest& request,
                std::vector<Token>* tokens) {
  tokens->resize(request.input_tokens);
  Token* next = tokens->data();
  uint32_t left = request.input_tokens;
  for (const uint64_t id : request.block_ids) {
    const uint32_t count = std::min(left, trace.block_tokens);
    const uint64_t first = id * trace.block_tokens;
    for (uint32_t i = 0; i < count; ++i) {
      next[i] = static_cast<Token>(SplitMix64(first + i) >> 32);
    }
    next += count;
    left -= count;
  }
}

}  // namespace pando::replay
