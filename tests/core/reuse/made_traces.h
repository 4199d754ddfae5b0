#ifndef PANDO_TESTS_CORE_REUSE_MADE_TRACES_H_
#define PANDO_TESTS_CORE_REUSE_MADE_TRACES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/prefix_cache.h"

namespace pando {

// A prompt of a made trace, which shows the strengths and weaknesses of an
// eviction order. The prompt is a list of blocks of pages. A number names each
// block.
using MadePrompt = std::vector<uint32_t>;
struct MadeTrace {
  std::string name;
  std::vector<MadePrompt> prompts;
};

// Makes traces for a cache of 200 blocks. Each seed gives other traces.
std::vector<MadeTrace> MadeTraces(uint64_t seed);

// A cache of 200 blocks that serves prompts one after another, as an engine
// does.
class MadeCache {
 public:
  static constexpr uint32_t kBlockPages = 4;
  static constexpr uint32_t kPages = 200 * kBlockPages;

  explicit MadeCache(EvictionPolicyKind policy, ReuseOptions reuse = {});

  void Serve(const MadePrompt& prompt);
  void Serve(const std::vector<MadePrompt>& prompts) {
    for (const MadePrompt& prompt : prompts) Serve(prompt);
  }

  uint64_t hit_pages() const { return hit_pages_; }
  uint64_t requested_pages() const { return requested_pages_; }
  ReuseStats reuse() { return cache_.Stats().reuse.value(); }
  PrefixCache& cache() { return cache_; }

 private:
  static constexpr SessionId kSession{1};
  const NamespaceKey ns_;
  PrefixCache cache_;
  uint64_t hit_pages_ = 0;
  uint64_t requested_pages_ = 0;
};

}  // namespace pando

#endif  // PANDO_TESTS_CORE_REUSE_MADE_TRACES_H_
