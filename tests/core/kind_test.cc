// Tests of the kinds of blocks: the sessions that have them open, their
// generations and their limits.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/block_cache.h"
#include "tests/core/block_fixture.h"

namespace pando {
namespace {

using ::testing::HasSubstr;

using KindTest = BlockTest;

TEST_F(KindTest, KindsAreThoseThatTheSessionHasOpen) {
  const SessionId other(2);
  cache_.OpenSession(other, "other");
  const std::string keys = Keys("a");
  EXPECT_EQ(Outcome(blocks_.Lookup(other, Ask(keys))), "KIND_UNKNOWN");
  const std::vector<KindName> names = {{.ns = {}, .identity = "kind"},
                                       {.ns = {}, .identity = "none"}};
  const auto found = blocks_.FindKinds(other, names);
  EXPECT_EQ(found->at(0).number, kind_);
  EXPECT_EQ(found->at(1).number, KindNumber());
  EXPECT_EQ(Outcome(blocks_.Lookup(other, Ask(keys))), "OK");
}

TEST_F(KindTest, OtherSizesUnderAnIdentityAreRefused) {
  std::vector<KindSpec> specs = {Spec("new"), Spec("kind")};
  specs[1].shard_bytes = 2 * kPlaceBytes;
  const auto opened = blocks_.OpenKinds(session_, specs);
  EXPECT_EQ(Outcome(opened), "LAYOUT_MISMATCH");
  EXPECT_THAT(std::string(opened.status().message()),
              HasSubstr("[1].shard_bytes is 8192, but the kind of this "
                        "identity is there with 4096"));
  EXPECT_EQ(blocks_.Stats().kinds.size(), 1u);  // all or none are opened
}

TEST_F(KindTest, KindsThatASessionHasOpenAreLimited) {
  for (size_t i = 1; i < kMaxKindsOfSession; ++i) {
    Open(session_, absl::StrCat("other ", i));
  }
  const std::vector<KindSpec> more = {Spec("kind"), Spec("one more")};
  const auto opened = blocks_.OpenKinds(session_, more);
  EXPECT_EQ(Outcome(opened), "SESSION_LIMIT");
  EXPECT_THAT(
      std::string(opened.status().message()),
      HasSubstr("1 more kinds are named, and the session has 256 open"));
  const std::vector<KindNumber> reset = {kind_};
  EXPECT_EQ(Outcome(blocks_.ResetKinds(session_, reset)), "OK");

  const SessionId other(2);
  cache_.OpenSession(other, "other");
  EXPECT_EQ(Outcome(blocks_.OpenKinds(other, more)), "OK");
  const std::vector<KindName> names = {{.ns = {}, .identity = "one more"}};
  EXPECT_EQ(Outcome(blocks_.FindKinds(session_, names)), "SESSION_LIMIT");
}

TEST_F(KindTest, GenerationsBetweenTwoThatAreOpenGo) {
  const SessionId other(2);
  cache_.OpenSession(other, "other");
  KindNumber newest = Open(other, "kind");
  for (int i = 0; i < 5; ++i) {
    newest = blocks_.ResetKinds(other, {&newest, 1})->front().number;
  }
  const SessionId third(3);
  cache_.OpenSession(third, "third");
  cache_.CloseSession(third);
  EXPECT_EQ(blocks_.Stats().kinds.size(), 2u);
  cache_.CloseSession(other);
  cache_.CloseSession(session_);
  EXPECT_EQ(blocks_.Stats().kinds.size(), 0u);
}

TEST_F(KindTest, AResetTakesNothingFromOthers) {
  const SessionId other(2);
  cache_.OpenSession(other, "other");
  Open(other, "kind");
  Store("a");
  const std::vector<KindNumber> kinds = {kind_};
  const BlockKind renewed = blocks_.ResetKinds(session_, kinds)->front();
  EXPECT_EQ(renewed.generation, 2u);
  const std::string keys = Keys("a");
  EXPECT_EQ(Outcome(blocks_.Lookup(session_, Ask(keys))), "KIND_UNKNOWN");
  EXPECT_EQ(Letters(blocks_.Lookup(other, Ask(keys))), "f");
  cache_.CloseSession(other);
  EXPECT_EQ(blocks_.Stats().free_extents, 2u);
  EXPECT_EQ(blocks_.Stats().kinds.size(), 1u);
}

TEST_F(KindTest, TheNewestGenerationStaysWhileAnOlderOneIsOpen) {
  const SessionId other(2);
  cache_.OpenSession(other, "other");
  Open(other, "kind");
  const std::vector<KindNumber> kinds = {kind_};
  EXPECT_EQ(blocks_.ResetKinds(other, kinds)->front().generation, 2u);
  cache_.CloseSession(other);
  EXPECT_EQ(blocks_.ResetKinds(session_, kinds)->front().generation, 2u);
  EXPECT_EQ(blocks_.Stats().kinds.size(), 2u);
  cache_.ExpireSessions(absl::UnixEpoch(), absl::Hours(1));
  EXPECT_EQ(blocks_.Stats().kinds.size(), 1u);
}

}  // namespace
}  // namespace pando
