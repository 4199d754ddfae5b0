#include <optional>

#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

using NamespaceTest = CacheFixture;

TEST_F(NamespaceTest, NothingIsSharedBetweenNamespaces) {
  const auto plain = Publish("ab");
  const auto lora = Publish("ab", {"lora-1", std::nullopt});
  const auto salted = Publish("ab", {"lora-1", "tenant"});
  EXPECT_EQ(cache_.Stats().namespaces, 3u);
  EXPECT_EQ(PagesOf("ab"), plain);
  EXPECT_EQ(PagesOf("ab", {"lora-1", std::nullopt}), lora);
  EXPECT_EQ(PagesOf("ab", {"lora-1", "tenant"}), salted);
  EXPECT_EQ(CachedPages("ab", {"lora-2", std::nullopt}), 0u);
  EXPECT_EQ(CachedPages("ab", {std::nullopt, "tenant"}), 0u);
}

TEST_F(NamespaceTest, UnsetDiffersFromEmpty) {
  Publish("ab");
  EXPECT_EQ(CachedPages("ab", {"", std::nullopt}), 0u);
  EXPECT_EQ(CachedPages("ab", {std::nullopt, ""}), 0u);
  EXPECT_EQ(CachedPages("ab", {"", ""}), 0u);
}

TEST_F(NamespaceTest, FieldsAreComparedApart) {
  Publish("ab", {"bc", "a"});
  EXPECT_EQ(CachedPages("ab", {"c", "ab"}), 0u);
  EXPECT_EQ(CachedPages("ab", {"a", "bc"}), 0u);
  EXPECT_EQ(CachedPages("ab", {"bc", "a"}), 2u);
}

TEST_F(NamespaceTest, SharesThePoolAndTheEvictionOrder) {
  Publish("ab", {"old", std::nullopt});
  Publish("ab", {"new", std::nullopt});
  EXPECT_EQ(cache_.Evict(2), 2u);
  EXPECT_EQ(CachedPages("ab", {"old", std::nullopt}), 0u);
  EXPECT_EQ(CachedPages("ab", {"new", std::nullopt}), 2u);
}

TEST_F(NamespaceTest, ExistsOnlyWhileSomethingIsCachedOrLockedInIt) {
  const NamespaceKey ns{"lora", std::nullopt};
  EXPECT_EQ(CachedPages("ab", ns), 0u);
  EXPECT_EQ(cache_.Stats().namespaces, 0u);
  const auto lock = cache_.Lock({session_, ns, {}});
  ASSERT_EQ(Outcome(lock), "OK");
  EXPECT_EQ(cache_.Stats().namespaces, 1u);
  ASSERT_EQ(Outcome(InsertAt(lock->lock, "ab", Allocate(2))), "OK");
  ASSERT_EQ(Outcome(Unlock(lock->lock)), "OK");
  EXPECT_EQ(CachedPages("ab", ns), 2u);
  EXPECT_EQ(cache_.Stats().namespaces, 1u);
  cache_.Flush();
  EXPECT_EQ(cache_.Stats().namespaces, 0u);
}

TEST_F(NamespaceTest, OfALockIsImpliedInAnAnchoredInsert) {
  const NamespaceKey ns{"lora", "tenant"};
  const auto lock = cache_.Lock({session_, ns, {}});
  ASSERT_EQ(Outcome(lock), "OK");
  ASSERT_EQ(Outcome(InsertAt(lock->lock, "ab", Allocate(2))), "OK");
  EXPECT_EQ(CachedPages("ab", ns), 2u);
  EXPECT_EQ(CachedPages("ab"), 0u);
}

TEST_F(NamespaceTest, OtherThanTheAnchorsIsAnErrorAndChangesNothing) {
  const NamespaceKey ns{"lora", "tenant"};
  const NamespaceKey other{"lora", std::nullopt};
  const auto lock = cache_.Lock({session_, ns, {}});
  const auto pages = Allocate(1);
  const auto tokens = Spell("a");
  const auto insert = [&](const NamespaceKey& named) {
    return Outcome(cache_.Insert({.session = session_,
                                  .ns = named,
                                  .tokens = tokens,
                                  .pages = pages,
                                  .anchor = lock->lock}));
  };
  const auto before = Snapshot();
  EXPECT_EQ(insert(other), "NAMESPACE_MISMATCH");
  EXPECT_EQ(Snapshot(), before);
  EXPECT_EQ(insert(ns), "OK");
}

}  // namespace
}  // namespace pando
