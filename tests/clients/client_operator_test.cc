// Tests calls about the cache as a whole, which need no session, against a real
// pandod.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "pando/operator.h"
#include "tests/clients/pandod_fixture.h"

namespace pando {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ClientOperatorTest : public PandodTest {
 protected:
  std::unique_ptr<Operator> Ask(const std::string& token = "") {
    return *Operator::Make({.address = socket_path(),
                            .timeout = absl::Seconds(30),
                            .token = token});
  }

  // Publishes the first pages of a prompt.
  static void Publish(Client& client, uint32_t pages) {
    const ReservedPages reserved = *client.AllocatePages(pages);
    const auto done = client.Insert(Prompt(pages * kPageTokens), reserved.ids,
                                    {.session_id = reserved.session_id});
    ASSERT_TRUE(done.ok()) << done.status();
  }
};

TEST_F(ClientOperatorTest, AsksWithoutASession) {
  const auto asked = Ask();
  const Stats stats = *asked->GetStats();
  EXPECT_EQ(stats.sessions, 0u);
  EXPECT_EQ(stats.pages.capacity, kPoolPages);
  EXPECT_THAT(*asked->CheckInvariants(), IsEmpty());
}

TEST_F(ClientOperatorTest, ListsWhoHoldsWhatAndTakesLocksAway) {
  const auto client = Connect({.name = "worker 0"});
  Publish(*client, 3);
  const Lock lock = *client->TakeLock(Prompt(3 * kPageTokens));

  const auto asked = Ask();
  const Listing<SessionInfo> sessions = *asked->ListSessions();
  ASSERT_THAT(sessions.items, SizeIs(1));
  EXPECT_EQ(sessions.total, 1u);
  EXPECT_EQ(sessions.items[0].client_name, "worker 0");
  EXPECT_EQ(sessions.items[0].locks, 1u);
  EXPECT_TRUE(sessions.items[0].is_connected);

  const uint32_t number = sessions.items[0].session_number;
  const Listing<LockInfo> locks = *asked->ListLocks(10, number);
  ASSERT_THAT(locks.items, SizeIs(1));
  EXPECT_EQ(locks.items[0].locked_tokens, 3 * kPageTokens);
  EXPECT_EQ(locks.items[0].session_number, number);
  EXPECT_EQ(locks.items[0].namespace_number,
            asked->ListNamespaces()->items[0].number);
  EXPECT_EQ(*asked->ReleaseLocks(number), 1u);
  EXPECT_THAT(asked->ListLocks()->items, IsEmpty());
}

TEST_F(ClientOperatorTest, ShowsTheTreeAndItsNamespaces) {
  const auto client = Connect();
  Publish(*client, 3);
  const auto asked = Ask();
  const TreeDump dump = *asked->DumpTree();
  ASSERT_THAT(dump.nodes, SizeIs(1));
  EXPECT_EQ(dump.nodes[0].pages, 3u);
  EXPECT_EQ(dump.nodes[0].tokens, 3 * kPageTokens);
  EXPECT_EQ(dump.omitted, 0u);
  const Listing<NamespaceInfo> namespaces = *asked->ListNamespaces();
  ASSERT_THAT(namespaces.items, SizeIs(1));
  EXPECT_EQ(namespaces.items[0].evictable_pages, 3u);
  EXPECT_EQ(namespaces.items[0].extra_key, std::nullopt);
  EXPECT_EQ(dump.nodes[0].namespace_number, namespaces.items[0].number);
}

TEST_F(ClientOperatorTest, AListingSaysHowManyAreNotListed) {
  const auto client = Connect();
  const auto another = Connect();
  const Listing<SessionInfo> sessions = *Ask()->ListSessions(1);
  EXPECT_THAT(sessions.items, SizeIs(1));
  EXPECT_EQ(sessions.total, 2u);
}

TEST_F(ClientOperatorTest, ExplainsWhyAPromptMatchesNoFurther) {
  const auto client = Connect();
  Publish(*client, 3);
  const auto asked = Ask();
  EXPECT_EQ(asked->ExplainMatch(Prompt(3 * kPageTokens))->end,
            MatchEnd::kComplete);
  ASSERT_EQ(*client->Evict(1), 1u);
  const Explanation evicted = *asked->ExplainMatch(Prompt(3 * kPageTokens));
  EXPECT_EQ(evicted.matched_tokens, 2 * kPageTokens);
  EXPECT_EQ(evicted.end, MatchEnd::kEvicted);
  EXPECT_EQ(evicted.evicted_for, EvictionReason::kRequest);
  EXPECT_EQ(asked->ExplainMatch(Prompt(kPageTokens, 2))->end,
            MatchEnd::kDiverged);
}

TEST_F(ClientOperatorTest, FlushesAllOrOneNamespace) {
  const auto client = Connect();
  Publish(*client, 2);
  const auto asked = Ask();
  EXPECT_EQ(asked->Flush(Namespace{.extra_key = "other"})->evicted_pages, 0u);
  const uint64_t number = asked->ListNamespaces()->items[0].number;
  EXPECT_EQ(asked->FlushNumber(number)->evicted_pages, 2u);
  Publish(*client, 2);
  EXPECT_EQ(asked->Flush()->evicted_pages, 2u);
}

TEST_F(ClientOperatorTest, ChangesTheEvictionPolicy) {
  const auto asked = Ask();
  EXPECT_EQ(*asked->SetEvictionPolicy("slru"), "lru");
  EXPECT_EQ(asked->GetStats()->eviction_policy, "slru");
}

TEST_F(ClientOperatorTest, TellsWhatIsLearntOfReuseWhileItIs) {
  const auto client = Connect();
  const auto asked = Ask();
  EXPECT_FALSE(asked->GetStats()->reuse.has_value());
  ASSERT_EQ(*asked->SetEvictionPolicy("reuse"), "lru");
  const ReservedPages reserved = *client->AllocatePages(3);
  const auto done = client->Insert(
      Prompt(3 * kPageTokens), reserved.ids,
      {.session_id = reserved.session_id, .output_tokens = kPageTokens});
  ASSERT_TRUE(done.ok()) << done.status();
  ASSERT_TRUE(client->TakeLock(Prompt(2 * kPageTokens)).ok());
  const Stats stats = *asked->GetStats();
  ASSERT_TRUE(stats.reuse.has_value());
  EXPECT_EQ(stats.reuse->requested_pages, 3u + 2u);  // insert, lock
  EXPECT_EQ(stats.reuse->hit_pages, 2u);
  EXPECT_EQ(stats.reuse->lru_hit_pages, 2u);
}

TEST_F(ClientOperatorTest, EvictsAnEndedPrefixFirst) {
  const auto client = Connect();
  Publish(*client, 2);
  const ReservedPages reserved = *client->AllocatePages(1);
  const std::vector<Token> ended(kPageTokens, 77);
  const auto done = client->Insert(ended, reserved.ids,
                                   {.session_id = reserved.session_id,
                                    .expected_reuse = ExpectedReuse::kEnded});
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(*client->Evict(1), 1u);
  EXPECT_EQ(client->MatchPrefix(ended)->matched_tokens, 0u);
}

TEST_F(ClientOperatorTest, WatchesWhatEntersTheCache) {
  const auto client = Connect();
  Publish(*client, 2);
  auto asked = Ask();
  const auto watch = asked->WatchEvents();
  asked.reset();  // the watch outlives the operator
  EXPECT_TRUE(std::holds_alternative<AllBlocksCleared>(watch->Next()->what));
  const Event stored = *watch->Next();
  EXPECT_EQ(std::get<BlocksStored>(stored.what).tokens,
            Prompt(2 * kPageTokens));
  EXPECT_TRUE(std::holds_alternative<SnapshotEnd>(watch->Next()->what));
  watch->Cancel();
  EXPECT_TRUE(absl::IsCancelled(watch->Next().status()));
}

TEST_F(ClientOperatorTest, WhatIsNotInQuarantineCannotBeFreed) {
  const auto asked = Ask();
  EXPECT_EQ(asked->ListQuarantine()->total, 0u);
  EXPECT_THAT(asked->FreeQuarantine(1).status(),
              FailsWith(reason::kSessionLost));
}

TEST_F(ClientOperatorTest, APandodWithoutAKeeperIsNotRestarted) {
  EXPECT_THAT(Ask()->Restart(), FailsWith(reason::kNoKeeper));
}

TEST_F(ClientOperatorTest, ADrainedPandodAdmitsNothingNew) {
  const auto client = Connect();
  ASSERT_TRUE(Ask()->Drain().ok());
  EXPECT_THAT(client->AllocatePages(1).status(), FailsWith(reason::kDraining));
}

TEST_F(ClientOperatorTest, AnAbsentPandodIsUnavailable) {
  const auto asked = Ask();
  pandod_->Kill();
  EXPECT_TRUE(absl::IsUnavailable(asked->GetStats().status()));
}

TEST_F(ClientOperatorTest, AFileThatCannotBeReadIsNamed) {
  const absl::Status status =
      Operator::Make(
          {.address = "host:1",
           .tls =
               TlsFiles{.ca = "/none", .certificate = "/none", .key = "/none"}})
          .status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("/none"));
}

// A pandod with one reader, which it knows by a token.
class GuardedOperatorTest : public ClientOperatorTest {
 protected:
  static constexpr const char* kToken = "the-token-of-a-reader-and-of-nobody";

  std::vector<std::string> MoreFlags() const override {
    std::ofstream(folder_ / "token") << kToken << "\n";
    std::ofstream(folder_ / "config.yaml")
        << "credentials:\n- name: watcher\n  role: reader\n  token_file: "
        << (folder_ / "token").string() << "\n";
    std::filesystem::permissions(folder_ / "token",
                                 std::filesystem::perms::owner_read);
    return {"--config", folder_ / "config.yaml"};
  }
};

TEST_F(GuardedOperatorTest, ItsTokenSaysWhatItMay) {
  const auto asked = Ask(kToken);
  EXPECT_TRUE(asked->GetStats().ok());
  EXPECT_TRUE(asked->WatchEvents()->Next().ok());
  EXPECT_TRUE(absl::IsPermissionDenied(asked->Flush().status()));
  EXPECT_THAT(Ask()->GetStats().status(), FailsWith(reason::kNoCredential));
}

}  // namespace
}  // namespace pando
