#ifndef PANDO_TESTS_SERVICE_CONSOLE_GROWN_CACHE_H_
#define PANDO_TESTS_SERVICE_CONSOLE_GROWN_CACHE_H_

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/prefix_cache.h"

namespace pando {

// A cache with pages of one token, and one session that fills it.
class GrownCache {
 public:
  explicit GrownCache(uint32_t pages)
      : cache_({.page_tokens = 1, .capacity_pages = pages}) {
    cache_.OpenSession(session_, "worker");
  }

  // Inserts `tokens` as a prompt. Evicts others if there are too few free
  // pages.
  void Publish(const std::vector<Token>& tokens, const NamespaceKey& ns = {}) {
    const auto pages =
        cache_.Allocate({session_, ns, static_cast<uint32_t>(tokens.size())});
    const auto inserted = cache_.Insert({.session = session_,
                                         .ns = ns,
                                         .tokens = tokens,
                                         .pages = pages.value().pages});
    if (!inserted.ok()) std::abort();
  }

  LockId Lock(const std::vector<Token>& tokens, const NamespaceKey& ns = {}) {
    return cache_.Lock({session_, ns, tokens}).value().lock;
  }

  // Publishes random prompts in three namespaces. The prompts branch often, and
  // some of them are locked.
  void PublishAtRandom(int prompts, std::mt19937& random) {
    for (int i = 0; i < prompts; ++i) {
      const NamespaceKey ns = {.extra_key = std::to_string(random() % 3),
                               .cache_salt = std::nullopt};
      std::vector<Token> tokens(1 + random() % 12);
      for (Token& token : tokens) token = random() % 3;
      Publish(tokens, ns);
      if (random() % 8 == 0) Lock(tokens, ns);
    }
  }

  PrefixCache& operator*() { return cache_; }
  PrefixCache* operator->() { return &cache_; }

 private:
  const SessionId session_{1};
  PrefixCache cache_;
};

}  // namespace pando

#endif  // PANDO_TESTS_SERVICE_CONSOLE_GROWN_CACHE_H_
