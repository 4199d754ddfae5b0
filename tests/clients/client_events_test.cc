// Tests watches of what enters and leaves the cache, against a real pandod.
#include <gtest/gtest.h>

#include <thread>
#include <variant>

#include "tests/clients/pandod_fixture.h"

namespace pando {
namespace {

using testing::SizeIs;

class ClientEventsTest : public PandodTest {
 protected:
  // Publishes the first pages of a prompt.
  static void Publish(Client& client, uint32_t pages) {
    const ReservedPages reserved = *client.AllocatePages(pages);
    const auto done = client.Insert(Prompt(pages * kPageTokens), reserved.ids,
                                    {.session_id = reserved.session_id});
    ASSERT_TRUE(done.ok()) << done.status();
  }

  // Returns the next event, which must be of this kind.
  template <typename Kind>
  static Kind Take(EventWatch& watch, Event* whole = nullptr) {
    const absl::StatusOr<Event> event = watch.Next();
    EXPECT_TRUE(event.ok()) << event.status();
    if (!event.ok() || !std::holds_alternative<Kind>(event->what)) {
      ADD_FAILURE() << "another event";
      return {};
    }
    if (whole != nullptr) *whole = *event;
    return std::get<Kind>(event->what);
  }
};

TEST_F(ClientEventsTest, AWatchBeginsWithASnapshotAndGoesOnLive) {
  const auto client = Connect();
  Publish(*client, 2);
  const auto watch = client->WatchEvents();
  Take<AllBlocksCleared>(*watch);
  const BlocksStored stored = Take<BlocksStored>(*watch);
  EXPECT_EQ(stored.tokens, Prompt(32));
  EXPECT_THAT(stored.block_hashes, SizeIs(2));
  EXPECT_EQ(stored.page_tokens, kPageTokens);
  Event end;
  Take<SnapshotEnd>(*watch, &end);
  EXPECT_EQ(end.epoch, client->epoch());

  Publish(*client, 3);
  Event live;
  const BlocksStored more = Take<BlocksStored>(*watch, &live);
  EXPECT_EQ(more.parent_block_hash, stored.block_hashes[1]);
  EXPECT_EQ(live.sequence, end.sequence + 1);

  ASSERT_EQ(*client->Evict(1), 1u);
  const BlocksRemoved removed = Take<BlocksRemoved>(*watch);
  EXPECT_EQ(removed.block_hashes, more.block_hashes);
  EXPECT_EQ(removed.reason, EvictionReason::kRequest);
}

TEST_F(ClientEventsTest, AWatchContinuesAfterTheLastEventThatWasSeen) {
  const auto client = Connect();
  Event last;
  {
    const auto watch = client->WatchEvents();
    Take<AllBlocksCleared>(*watch);
    Take<SnapshotEnd>(*watch, &last);
  }
  Publish(*client, 1);
  const auto watch = client->WatchEvents(
      {.after_sequence = last.sequence, .epoch = last.epoch});
  Take<BlocksStored>(*watch);
}

TEST_F(ClientEventsTest, ACancelledWatchEnds) {
  const auto client = Connect();
  const auto watch = client->WatchEvents();
  Take<AllBlocksCleared>(*watch);
  Take<SnapshotEnd>(*watch);
  std::thread cancelling([&] { watch->Cancel(); });
  EXPECT_TRUE(absl::IsCancelled(watch->Next().status()));
  EXPECT_TRUE(absl::IsCancelled(watch->Next().status()));
  cancelling.join();
}

TEST_F(ClientEventsTest, ABrokenWatchIsUnavailable) {
  const auto client = Connect();
  const auto watch = client->WatchEvents();
  Take<AllBlocksCleared>(*watch);
  Take<SnapshotEnd>(*watch);
  pandod_->Kill();
  EXPECT_TRUE(absl::IsUnavailable(watch->Next().status()));
}

}  // namespace
}  // namespace pando
