#include "bench/core/workload.h"

#include <random>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "base/check.h"

namespace pando::bench {

std::vector<Token> Tokens(uint64_t seed, size_t count) {
  std::minstd_rand random(static_cast<uint32_t>(seed * 2654435761u + 1));
  std::vector<Token> tokens(count);
  for (Token& token : tokens) token = static_cast<Token>(random() % 128'000);
  // Two tokens tell a seed apart, whatever the page size.
  if (count > 0) tokens[0] = static_cast<Token>(1'000'000 + seed);
  return tokens;
}

std::unique_ptr<PrefixCache> MakeCache(uint32_t page_tokens, uint64_t pages,
                                       EvictionPolicyKind policy) {
  // pandod turns this off, too.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  auto cache = std::make_unique<PrefixCache>(
      PrefixCache::Options{.page_tokens = page_tokens,
                           .capacity_pages = static_cast<uint32_t>(pages + 1),
                           .eviction_policy = policy});
  cache->OpenSession(kSession, "bench");
  return cache;
}

std::vector<PageId> Publish(PrefixCache& cache, std::span<const Token> prompt,
                            std::vector<PageId> prefix) {
  const auto pages = static_cast<uint32_t>(prompt.size()) / cache.page_tokens();
  const auto reserved =
      cache.Allocate({.session = kSession,
                      .ns = kNamespace,
                      .pages = pages - static_cast<uint32_t>(prefix.size())});
  CHECK(reserved.ok());
  prefix.insert(prefix.end(), reserved->pages.begin(), reserved->pages.end());
  CHECK(
      cache
          .Insert({.session = kSession,
                   .ns = kNamespace,
                   .tokens = prompt.first(size_t{pages} * cache.page_tokens()),
                   .pages = prefix})
          .ok());
  return prefix;
}

void PublishPath(PrefixCache& cache, std::span<const Token> prompt, int nodes) {
  const size_t step = prompt.size() / static_cast<size_t>(nodes);
  std::vector<PageId> pages;
  for (int i = 1; i <= nodes; ++i) {
    pages = Publish(cache,
                    prompt.first(i == nodes ? prompt.size()
                                            : static_cast<size_t>(i) * step),
                    std::move(pages));
  }
}

void PublishLeaves(PrefixCache& cache, uint64_t leaves, size_t tokens) {
  for (uint64_t leaf = 0; leaf < leaves; ++leaf) {
    Publish(cache, Tokens(leaf, tokens));
  }
}

}  // namespace pando::bench
