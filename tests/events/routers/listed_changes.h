#ifndef PANDO_TESTS_EVENTS_ROUTERS_LISTED_CHANGES_H_
#define PANDO_TESTS_EVENTS_ROUTERS_LISTED_CHANGES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "events/routers/kv_event_batch.h"
#include "events/tier_changes.h"
#include "gtest/gtest.h"

namespace pando {

// Returns a hash that has this block id.
inline PageHash HashOf(BlockId id) {
  PageHash hash = {};
  for (int i = 7; i >= 0; --i, id >>= 8) hash[i] = static_cast<uint8_t>(id);
  return hash;
}

// A tier that reports the changes that a test gives it.
class ListedChanges final : public TierChanges {
 public:
  explicit ListedChanges(uint32_t page_tokens) : page_tokens_(page_tokens) {}

  void FollowChanges() override { is_followed_ = true; }
  std::vector<TierChange> TakeChanges() override {
    EXPECT_TRUE(is_followed_);
    return std::exchange(changes_, {});
  }

  void Store(BlockId id, BlockId before, uint32_t ordinal,
             const NamespaceKey& ns = {}) {
    std::vector<Token> tokens(page_tokens_ + (ns.bigram ? 1 : 0));
    for (size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = static_cast<Token>(page_tokens_ * id + i);
    }
    changes_.push_back({.hash = HashOf(id),
                        .stored = TierChange::Page{
                            .before = HashOf(before),
                            .ordinal = ordinal,
                            .ns = std::make_shared<const NamespaceKey>(ns),
                            .tokens = std::move(tokens)}});
  }
  // Stores pages first + 1 to first + count, the whole beginning of a prompt.
  void StorePrompt(BlockId first, uint32_t count, const NamespaceKey& ns = {}) {
    for (uint32_t i = 1; i <= count; ++i) {
      Store(first + i, first + i - 1, i, ns);
    }
  }
  void Remove(BlockId id) {
    changes_.push_back({.hash = HashOf(id), .stored = {}});
  }

 private:
  const uint32_t page_tokens_;
  bool is_followed_ = false;
  std::vector<TierChange> changes_;
};

}  // namespace pando

#endif  // PANDO_TESTS_EVENTS_ROUTERS_LISTED_CHANGES_H_
