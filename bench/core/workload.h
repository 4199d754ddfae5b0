#ifndef PANDO_BENCH_CORE_WORKLOAD_H_
#define PANDO_BENCH_CORE_WORKLOAD_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/prefix_cache.h"

namespace pando::bench {

inline const NamespaceKey kNamespace;
inline constexpr SessionId kSession{1};

// Tokens that no other seed gives.
std::vector<Token> Tokens(uint64_t seed, size_t count);

// A cache with room for `pages` pages and one session.
std::unique_ptr<PrefixCache> MakeCache(
    uint32_t page_tokens, uint64_t pages,
    EvictionPolicyKind policy = EvictionPolicyKind::kLru);

// Caches `prompt`, of which `prefix` pages are cached already, as one node.
// Returns all its pages.
std::vector<PageId> Publish(PrefixCache& cache, std::span<const Token> prompt,
                            std::vector<PageId> prefix = {});

// Caches `prompt` as a path of `nodes` nodes.
void PublishPath(PrefixCache& cache, std::span<const Token> prompt, int nodes);

// Caches `leaves` prompts of `tokens` tokens each, all different from the first
// page on.
void PublishLeaves(PrefixCache& cache, uint64_t leaves, size_t tokens);

}  // namespace pando::bench

#endif  // PANDO_BENCH_CORE_WORKLOAD_H_
