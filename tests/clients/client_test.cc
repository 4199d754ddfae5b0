// Tests the calls of the client, against a real pandod.
#include "pando/client.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/clients/pandod_fixture.h"

namespace pando {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

using ClientTest = PandodTest;

// Admits a request for `prompt` that computes at least the last token.
Match Admit(Client& client, const std::vector<Token>& prompt) {
  absl::StatusOr<Match> match = client.MatchPrefix(
      prompt, {.max_tokens = static_cast<uint32_t>(prompt.size()) - 1,
               .lock = true,
               .reserve_tokens = static_cast<uint32_t>(prompt.size())});
  EXPECT_TRUE(match.ok()) << match.status();
  return match.ok() ? *std::move(match) : Match();
}

// Publishes the whole pages of `prompt` and finishes the request.
absl::StatusOr<InsertResult> Finish(Client& client,
                                    const std::vector<Token>& prompt,
                                    Match& match) {
  const auto suffix = std::span(prompt).subspan(match.matched_tokens);
  const std::span<const PageId> reserved = match.reserved.ids;
  const size_t whole = suffix.size() / kPageTokens;
  return client.Insert(suffix, reserved.first(whole),
                       {.lock = &match.lock,
                        .lock_action = LockAction::kUnlock,
                        .free_page_ids = reserved.subspan(whole)});
}

TEST_F(ClientTest, ConnectFailsWhenNobodyListens) {
  const auto client = Client::Connect({.address = "unix:/nowhere/pando.sock",
                                       .timeout = absl::Milliseconds(100)});
  EXPECT_TRUE(absl::IsUnavailable(client.status())) << client.status();
}

TEST_F(ClientTest, ConnectFailsAtOnceWhenTheServerRefuses) {
  const auto client = Client::Connect({.address = "unix:" + socket_path(),
                                       .name = std::string(129, 'x'),
                                       .timeout = absl::Minutes(10)});
  EXPECT_THAT(client.status(), FailsWith("INVALID_FIELD"));
}

TEST_F(ClientTest, APathIsTheAddressOfAUnixSocket) {
  const auto client = Connect({.address = socket_path()});
  EXPECT_EQ(client->GetStats()->sessions, 1u);
}

TEST_F(ClientTest, AnInsertAnswersWithTheWholeBlockTable) {
  const auto client = Connect();
  const std::vector<Token> prompt = Prompt(3 * kPageTokens);
  const auto cached = client->AllocatePages(2);
  ASSERT_TRUE(client
                  ->Insert(std::span(prompt).first(2 * kPageTokens),
                           cached->ids, {.session_id = cached->session_id})
                  .ok());
  const auto own = client->AllocatePages(3);
  const auto insert =
      client->Insert(prompt, own->ids, {.session_id = own->session_id});
  ASSERT_TRUE(insert.ok()) << insert.status();
  EXPECT_THAT(insert->page_ids,
              ElementsAre(cached->ids[0], cached->ids[1], own->ids[2]));
}

TEST_F(ClientTest, AnAllocationWithAMinimumGivesWhatThereIs) {
  const auto client = Connect();
  const auto most = client->AllocatePages(UINT32_MAX, {}, 1);
  ASSERT_TRUE(most.ok()) << most.status();
  EXPECT_EQ(most->ids.size(), kPoolPages - 1);
  EXPECT_EQ(client->room(), (PageRoom{.free = 0, .evictable = 0}));
  EXPECT_THAT(client->AllocatePages(2, {}, 1).status(),
              FailsWith("POOL_EXHAUSTED"));
  EXPECT_THAT(client->AllocatePages(2, {}, 0)->ids, IsEmpty());
}

TEST_F(ClientTest, AnswersTellHowManyPagesAreFreeAndEvictable) {
  const auto client = Connect();
  EXPECT_EQ(client->room(), PageRoom());
  const std::vector<Token> prompt = Prompt(2 * kPageTokens);
  Match match = Admit(*client, prompt);
  EXPECT_EQ(client->room(), (PageRoom{.free = kPoolPages - 3}));
  ASSERT_TRUE(Finish(*client, prompt, match).ok());
  EXPECT_EQ(client->room(), (PageRoom{.free = kPoolPages - 3, .evictable = 2}));
}

TEST_F(ClientTest, ACapOfZeroMatchesNothing) {
  const auto client = Connect();
  const std::vector<Token> prompt = Prompt(17);
  Match match = Admit(*client, prompt);
  ASSERT_TRUE(Finish(*client, prompt, match).ok());
  EXPECT_EQ(client->MatchPrefix(prompt, {.max_tokens = 0})->matched_tokens, 0u);
  EXPECT_EQ(client->MatchPrefix(prompt)->matched_tokens, 16u);
}

TEST_F(ClientTest, AnInsertNeedNotSendThePromptAgain) {
  const auto client = Connect();
  const std::vector<Token> prompt = Prompt(40);
  Match match = Admit(*client, prompt);
  const std::vector<Token> generated(8, 7);  // three pages with the prompt
  const auto insert = client->Insert(generated, match.reserved.ids,
                                     {.lock = &match.lock,
                                      .lock_action = LockAction::kUnlock,
                                      .prompt_tokens = 40});
  ASSERT_TRUE(insert.ok()) << insert.status();
  std::vector<Token> all = prompt;
  all.insert(all.end(), generated.begin(), generated.end());
  EXPECT_EQ(client->MatchPrefix(all)->matched_tokens, 48u);
}

TEST_F(ClientTest, AnotherWorkerHitsWhatOneWorkerInserted) {
  const auto a = Connect(), b = Connect();
  const std::vector<Token> prompt = Prompt(100);
  Match first = Admit(*a, prompt);
  EXPECT_EQ(first.matched_tokens, 0u);
  EXPECT_THAT(first.reserved.ids, SizeIs(7));
  const std::vector<PageId> written(first.reserved.ids.begin(),
                                    first.reserved.ids.begin() + 6);
  ASSERT_TRUE(Finish(*a, prompt, first).ok());

  const Match second = Admit(*b, prompt);
  EXPECT_EQ(second.matched_tokens, 96u);
  EXPECT_THAT(second.page_ids, ElementsAreArray(written));
  EXPECT_THAT(second.reserved.ids, SizeIs(1));
}

TEST_F(ClientTest, FinishLeavesNothingReservedOrLocked) {
  const auto client = Connect();
  const std::vector<Token> prompt = Prompt(100);
  Match match = Admit(*client, prompt);
  ASSERT_TRUE(Finish(*client, prompt, match).ok());
  EXPECT_FALSE(match.lock.held());

  const Stats stats = *client->GetStats();
  EXPECT_EQ(stats.locks, 0u);
  EXPECT_EQ(stats.pages.reserved, 0u);
  EXPECT_EQ(stats.pages.evictable, 6u);
  EXPECT_EQ(stats.pages.Sum(), stats.pages.capacity);
}

TEST_F(ClientTest, InsertAnswersWithTheCachesPagesForDuplicates) {
  const auto a = Connect(), b = Connect();
  const std::vector<Token> prompt = Prompt(33);
  Match first = Admit(*a, prompt);
  Match second = Admit(*b, prompt);
  const std::vector<PageId> pages(first.reserved.ids.begin(),
                                  first.reserved.ids.begin() + 2);
  ASSERT_TRUE(Finish(*a, prompt, first).ok());
  const auto result = Finish(*b, prompt, second);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->existing_tokens, 32u);
  EXPECT_THAT(result->canonical_page_ids, ElementsAreArray(pages));
  EXPECT_EQ(result->freed_duplicates, 2u);
}

TEST_F(ClientTest, ALockIsReleasedAtTheEndOfItsScope) {
  const auto client = Connect();
  {
    const auto lock = client->TakeLock(Prompt(16));
    ASSERT_TRUE(lock.ok()) << lock.status();
    EXPECT_EQ(client->GetStats()->locks, 1u);
  }
  EXPECT_EQ(client->GetStats()->locks, 0u);
}

TEST_F(ClientTest, ALockThatIsMovedIsReleasedOnce) {
  const auto client = Connect();
  Lock lock = *client->TakeLock(Prompt(16));
  Lock moved = std::move(lock);
  EXPECT_TRUE(moved.held());
  EXPECT_TRUE(moved.Release().ok());
  EXPECT_TRUE(moved.Release().ok());
  EXPECT_EQ(client->GetStats()->counters.locks_released, 1u);
}

TEST_F(ClientTest, ManyLocksAreReleasedInOneCall) {
  const auto client = Connect();
  std::vector<Lock> locks;
  for (int i = 0; i < 3; ++i) locks.push_back(*client->TakeLock(Prompt(16)));
  EXPECT_TRUE(client->Unlock(locks).ok());
  EXPECT_EQ(client->GetStats()->locks, 0u);
  EXPECT_FALSE(locks[0].held());
}

TEST_F(ClientTest, ALockMayOutliveTheClient) {
  auto client = Connect();
  Lock lock = *client->TakeLock(Prompt(16));
  client.reset();
  EXPECT_TRUE(lock.Release().ok());
}

TEST_F(ClientTest, RelockMovesTheBoundaryOfTheLock) {
  const auto client = Connect();
  const std::vector<Token> prompt = Prompt(64);
  Match match = Admit(*client, prompt);
  const std::span<const PageId> pages = match.reserved.ids;
  for (size_t page = 0; page < 4; page += 2) {
    const auto chunk = std::span(prompt).subspan(match.lock.tokens(), 32);
    ASSERT_TRUE(
        client
            ->Insert(chunk, pages.subspan(page, 2),
                     {.lock = &match.lock, .lock_action = LockAction::kRelock})
            .ok());
  }
  EXPECT_EQ(match.lock.tokens(), 64u);
  EXPECT_EQ(client->MatchPrefix(prompt)->matched_tokens, 64u);
  EXPECT_EQ(client->GetStats()->pages.protected_pages, 4u);
}

TEST_F(ClientTest, NamespacesShareNothing) {
  const auto client = Connect();
  const std::vector<Token> prompt = Prompt(16);
  const ReservedPages pages = *client->AllocatePages(1);
  ASSERT_TRUE(client
                  ->Insert(prompt, pages.ids,
                           {.session_id = pages.session_id,
                            .ns = {.extra_key = "lora", .cache_salt = ""}})
                  .ok());
  const auto matched = [&](Namespace ns) {
    return client->MatchPrefix(prompt, {.ns = std::move(ns)})->matched_tokens;
  };
  EXPECT_EQ(matched({.extra_key = "lora", .cache_salt = ""}), 16u);
  EXPECT_EQ(matched({.extra_key = "lora"}), 0u);
  EXPECT_EQ(matched({}), 0u);
}

TEST_F(ClientTest, EvictAndFlushEmptyTheCache) {
  const auto client = Connect();
  const std::vector<Token> prompt = Prompt(65);
  Match match = Admit(*client, prompt);
  ASSERT_TRUE(Finish(*client, prompt, match).ok());
  EXPECT_EQ(*client->Evict(1), 1u);
  EXPECT_EQ(client->Flush()->evicted_pages, 3u);
  EXPECT_EQ(client->GetStats()->pages.free, kPoolPages - 1);
}

TEST_F(ClientTest, PagesAreReservedAndGivenBack) {
  const auto client = Connect();
  const ReservedPages pages = *client->AllocatePages(3);
  EXPECT_EQ(client->GetStats()->pages.reserved, 3u);
  EXPECT_TRUE(client->FreePages(pages).ok());
  EXPECT_EQ(client->GetStats()->pages.reserved, 0u);
}

TEST_F(ClientTest, InvariantsHold) {
  const auto client = Connect();
  const auto violations = client->CheckInvariants();
  ASSERT_TRUE(violations.ok()) << violations.status();
  EXPECT_THAT(*violations, IsEmpty());
}

TEST_F(ClientTest, BytesWrittenByOneWorkerAreReadByAnother) {
  const auto a = Connect(), b = Connect();
  const auto writer = a->AttachPool(), reader = b->AttachPool();
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->epoch(), b->epoch());
  *reinterpret_cast<float*>(writer->KeyAddress(1, 5, 3, 1)) = 1.5f;
  *reinterpret_cast<float*>(writer->ValueAddress(1, 5, 3, 1)) = 2.5f;
  EXPECT_EQ(*reinterpret_cast<float*>(reader->KeyAddress(1, 5, 3, 1)), 1.5f);
  EXPECT_EQ(*reinterpret_cast<float*>(reader->ValueAddress(1, 5, 3, 1)), 2.5f);
}

TEST_F(ClientTest, AWorkerWithAnotherLayoutIsRefused) {
  const auto client = Connect();
  KvLayout layout = {.layers = 2,
                     .kv_planes = 2,
                     .heads = 2,
                     .head_size = 8,
                     .dtype = DType::kFloat32,
                     .page_tokens = kPageTokens};
  const auto attach = [&] {
    return client->AttachPool(
        {.expected_layout = layout.WithStrides(kPoolPages)});
  };
  const auto pool = attach();
  EXPECT_TRUE(pool.ok()) << pool.status();
  layout.dtype = DType::kBFloat16;
  EXPECT_THAT(attach().status(), FailsWith("LAYOUT_MISMATCH"));
  EXPECT_EQ(attach().status().message(),
            "dtype=bfloat16, but the pool has dtype=float32; a pool that fits: "
            "pandod --pool-bytes 266240 --layers 2 --kv-planes 2 --heads 2 "
            "--head-size 8 --dtype bfloat16 --page-tokens 16 --model 'llama'");
  layout.heads = 4;
  EXPECT_THAT(
      std::string(attach().status().message()),
      testing::StartsWith("heads=4, dtype=bfloat16, but the pool has "
                          "heads=2, dtype=float32; a pool that fits: "));
}

TEST_F(ClientTest, AWorkerWithAnotherModelIsRefused) {
  const auto client = Connect();
  EXPECT_TRUE(client->AttachPool({.model = "llama"}).ok());
  const absl::Status refused = client->AttachPool({.model = ";"}).status();
  EXPECT_THAT(refused, FailsWith("LAYOUT_MISMATCH"));
  EXPECT_THAT(std::string(refused.message()),
              testing::StartsWith("model=;, but the pool has model=llama; "));
}

TEST_F(ClientTest, ErrorsCarryTheServersReason) {
  const auto a = Connect(), b = Connect();
  const ReservedPages pages = *a->AllocatePages(1);
  const PageId page = pages.ids[0];
  const auto insert = [&](size_t tokens, std::vector<PageId> ids) {
    return a->Insert(Prompt(tokens), ids, {.session_id = pages.session_id})
        .status();
  };
  const auto free = [](Client& client, std::vector<PageId> ids) {
    return client.FreePages({.session_id = client.session_id(), .ids = ids});
  };
  EXPECT_THAT(insert(32, {page}), FailsWith("INVALID_ALIGNMENT"));
  EXPECT_THAT(insert(32, {page, page}), FailsWith("DUPLICATE_PAGE"));
  EXPECT_THAT(free(*a, {kPoolPages}), FailsWith("PAGE_OUT_OF_RANGE"));
  EXPECT_THAT(free(*a, {}), FailsWith("EMPTY_REQUEST"));
  EXPECT_THAT(free(*b, {page}), FailsWith("PAGE_NOT_OWNED"));
  EXPECT_THAT(a->MatchPrefix(Prompt(kMaxTokens + 1)).status(),
              FailsWith("TOO_MANY_TOKENS"));
  EXPECT_THAT(b->AllocatePages(kPoolPages).status(),
              FailsWith(reason::kPoolExhausted));
}

TEST_F(ClientTest, TheClientSetsNoLimitOnTheLengthOfAMessage) {
  const auto client = Connect();
  const auto match = client->MatchPrefix(std::vector<Token>(5 << 20));
  EXPECT_FALSE(match.ok());
  EXPECT_THAT(std::string(match.status().message()),
              Not(HasSubstr("Sent message larger")));
}

TEST_F(ClientTest, ALockOfAnotherClientIsRefusedAndStaysHeld) {
  const auto a = Connect(), b = Connect();
  std::vector<Lock> locks;
  locks.push_back(*a->TakeLock(Prompt(16)));
  EXPECT_TRUE(absl::IsInvalidArgument(
      b->Insert(Prompt(16), {}, {.lock = &locks[0]}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(b->Unlock(locks)));
  EXPECT_TRUE(locks[0].held());
  EXPECT_TRUE(a->Unlock(locks).ok());
}

TEST_F(ClientTest, InsertNeedsALockOrASession) {
  const auto client = Connect();
  EXPECT_TRUE(
      absl::IsInvalidArgument(client->Insert(Prompt(16), {}, {}).status()));
  Lock empty;
  EXPECT_TRUE(absl::IsInvalidArgument(
      client->Insert(Prompt(16), {}, {.lock = &empty}).status()));
}

}  // namespace
}  // namespace pando
