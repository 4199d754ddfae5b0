#include "service/watches/event_watch.h"

#include <grpcpp/impl/codegen/proto_utils.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "service/watches/event_encoding.h"

namespace pando {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kEpoch = 77;
constexpr size_t kHistory = 4;

// A history of events, which the tests fill. Event number n is a BlocksStored
// with n as its page_tokens.
class EventWatchTest : public testing::Test {
 protected:
  void Publish(int events) {
    for (int i = 0; i < events; ++i) {
      const uint64_t sequence = history_.next_sequence();
      v1::Event event;
      event.mutable_stored()->set_page_tokens(static_cast<uint32_t>(sequence));
      history_.Append(EncodeEvent(event, sequence));
    }
  }

  // Makes the snapshot that the history wants, with `events` large events.
  // Returns false if the history wants none.
  bool MakeSnapshot(int events = 1) {
    const auto wanted = history_.WantedSnapshot();
    if (wanted == nullptr) return false;
    const uint64_t sequence = history_.next_sequence() - 1;
    std::vector<grpc::Slice> parts;
    v1::Event event;
    event.mutable_cleared();
    parts.push_back(EncodeEvent(event, sequence));
    event.mutable_stored()->set_extra_key(std::string(200'000, 'x'));
    for (int i = 0; i < events; ++i) {
      parts.push_back(EncodeEvent(event, sequence));
    }
    event.mutable_snapshot_end();
    parts.push_back(EncodeEvent(event, sequence));
    history_.Finish(*wanted, std::move(parts));
    return true;
  }

  EventWatch Watch(std::optional<uint64_t> after = std::nullopt,
                   uint64_t epoch = kEpoch) {
    v1::WatchRequest request;
    if (after.has_value()) request.set_after_sequence(*after);
    request.set_epoch(epoch);
    return EventWatch(request, kEpoch, &history_);
  }

  // Returns the events of the next message as texts, such as "stored 5", "lost
  // 1..4 at 4" or "cleared at 4".
  static std::vector<std::string> Next(EventWatch& watch) {
    grpc::ByteBuffer message;
    std::vector<std::string> out;
    if (watch.Fill(message) != EventWatch::Next::kMessage) return out;
    v1::WatchResponse response;
    EXPECT_TRUE(grpc::SerializationTraits<v1::WatchResponse>::Deserialize(
                    &message, &response)
                    .ok());
    EXPECT_EQ(response.epoch(), kEpoch);
    for (const v1::Event& event : response.events()) {
      out.push_back(absl::StrCat(Spell(event), event.sequence()));
    }
    return out;
  }

  EventHistory history_{{.events = kHistory, .bytes = size_t{1} << 30}};

 private:
  static std::string Spell(const v1::Event& event) {
    if (event.has_lost()) {
      return absl::StrCat("lost ", event.lost().first_sequence(), "..",
                          event.lost().last_sequence(), " at ");
    }
    if (event.has_cleared()) return "cleared at ";
    if (event.has_snapshot_end()) return "end at ";
    return event.stored().has_extra_key() ? "held at " : "stored ";
  }
};

// The last owner of a snapshot frees its slices while others wait, so a
// snapshot must consist of few slices.
TEST(EncodedEventsTest, ManyEventsAreFewSlices) {
  constexpr size_t kEvents = 100'000;
  EncodedEvents encoded;
  v1::Event event;
  event.mutable_stored()->add_block_hashes(std::string(32, 'h'));
  for (size_t i = 0; i < kEvents; ++i) encoded.Add(event, i);
  std::vector<grpc::Slice> slices = encoded.Take();
  EXPECT_THAT(encoded.Take(), IsEmpty());
  grpc::ByteBuffer all(slices.data(), slices.size());
  EXPECT_LE(slices.size(), 1 + all.Length() / EncodedEvents::kSliceBytes);
  v1::WatchResponse decoded;
  ASSERT_TRUE(
      grpc::SerializationTraits<v1::WatchResponse>::Deserialize(&all, &decoded)
          .ok());
  ASSERT_EQ(decoded.events_size(), kEvents);
  for (size_t i = 0; i < kEvents; ++i) {
    ASSERT_EQ(decoded.events(static_cast<int>(i)).sequence(), i);
  }
}

TEST_F(EventWatchTest, WhoKnowsTheLastEventGetsWhatFollowsIt) {
  Publish(2);
  EventWatch watch = Watch(1);
  EXPECT_THAT(Next(watch), ElementsAre("stored 2"));
  EXPECT_THAT(Next(watch), IsEmpty());
  Publish(2);
  EXPECT_THAT(Next(watch), ElementsAre("stored 3", "stored 4"));
}

TEST_F(EventWatchTest, FromTheStartMeansAfterEventZero) {
  EventWatch watch = Watch(0);
  EXPECT_THAT(Next(watch), IsEmpty());
  Publish(1);
  EXPECT_THAT(Next(watch), ElementsAre("stored 1"));
  EXPECT_EQ(history_.WantedSnapshot(), nullptr);
}

TEST_F(EventWatchTest, WhoKnowsNothingGetsASnapshotAndWhatFollowsIt) {
  Publish(2);
  EventWatch watch = Watch();
  EXPECT_THAT(Next(watch), IsEmpty());
  Publish(1);
  ASSERT_TRUE(MakeSnapshot());
  Publish(1);
  EXPECT_THAT(Next(watch),
              ElementsAre("cleared at 3", "held at 3", "end at 3"));
  EXPECT_THAT(Next(watch), ElementsAre("stored 4"));
  EXPECT_THAT(Next(watch), IsEmpty());
}

TEST_F(EventWatchTest, WhoFellBehindIsToldWhatItLostAndBeginsAnew) {
  EventWatch watch = Watch(0);
  Publish(1);
  EXPECT_THAT(Next(watch), ElementsAre("stored 1"));
  Publish(kHistory + 1);
  EXPECT_THAT(Next(watch), IsEmpty());
  ASSERT_TRUE(MakeSnapshot());
  Publish(1);
  EXPECT_THAT(Next(watch), ElementsAre("lost 2..6 at 6", "cleared at 6",
                                       "held at 6", "end at 6"));
  EXPECT_EQ(history_.lost_events(), 5u);
  EXPECT_THAT(Next(watch), ElementsAre("stored 7"));
}

TEST_F(EventWatchTest, NothingIsLostAsLongAsTheHistoryHasIt) {
  EventWatch watch = Watch(0);
  Publish(kHistory);
  EXPECT_THAT(Next(watch),
              ElementsAre("stored 1", "stored 2", "stored 3", "stored 4"));
}

TEST_F(EventWatchTest, WhoComesFromAnotherEpochBeginsAnew) {
  Publish(2);
  EventWatch watch = Watch(1, kEpoch + 1);
  ASSERT_TRUE(MakeSnapshot());
  EXPECT_THAT(Next(watch), ElementsAre("lost 1..2 at 2", "cleared at 2",
                                       "held at 2", "end at 2"));
}

TEST_F(EventWatchTest, WhoClaimsAnEventToComeBeginsAnew) {
  Publish(2);
  EventWatch watch = Watch(3);
  ASSERT_TRUE(MakeSnapshot());
  EXPECT_THAT(Next(watch), ElementsAre("lost 1..2 at 2", "cleared at 2",
                                       "held at 2", "end at 2"));
}

TEST_F(EventWatchTest, ALargeSnapshotIsSentInSeveralMessages) {
  Publish(1);
  EventWatch watch = Watch();
  ASSERT_TRUE(MakeSnapshot(3));
  EXPECT_THAT(Next(watch),
              ElementsAre("cleared at 1", "held at 1", "held at 1"));
  EXPECT_THAT(Next(watch), ElementsAre("held at 1", "end at 1"));
}

TEST_F(EventWatchTest, WhoIsTooSlowForASnapshotBeginsAnew) {
  Publish(1);
  EventWatch watch = Watch();
  ASSERT_TRUE(MakeSnapshot(3));
  EXPECT_THAT(Next(watch),
              ElementsAre("cleared at 1", "held at 1", "held at 1"));
  Publish(kHistory + 1);
  EXPECT_THAT(Next(watch), IsEmpty());
  ASSERT_TRUE(MakeSnapshot());
  EXPECT_THAT(Next(watch), ElementsAre("lost 2..6 at 6", "cleared at 6",
                                       "held at 6", "end at 6"));
}

TEST_F(EventWatchTest, WatchersShareASnapshotWhileItCanBeContinued) {
  Publish(1);
  EventWatch first = Watch();
  EventWatch second = Watch();
  ASSERT_TRUE(MakeSnapshot(3));
  EXPECT_FALSE(MakeSnapshot());
  EventWatch third = Watch();
  EXPECT_FALSE(MakeSnapshot());
  EXPECT_THAT(Next(second), testing::SizeIs(3));
  EXPECT_THAT(Next(third), testing::SizeIs(3));
  Publish(kHistory + 1);
  EventWatch late = Watch();
  EXPECT_TRUE(MakeSnapshot());
}

TEST_F(EventWatchTest, ASnapshotThatNobodyWaitsForIsNotMade) {
  { EventWatch watch = Watch(); }
  EXPECT_FALSE(MakeSnapshot());
}

TEST_F(EventWatchTest, TheHistoryKeepsToItsBytes) {
  EventHistory small({.events = 100, .bytes = 50});
  v1::Event event;
  event.mutable_stored()->set_extra_key(std::string(30, 'x'));
  for (uint64_t i = 1; i <= 3; ++i) small.Append(EncodeEvent(event, i));
  std::vector<grpc::Slice> events;
  EXPECT_FALSE(small.Read(1, 1'000, events));
  EXPECT_TRUE(small.Read(2, 1'000, events));
  EXPECT_THAT(events, testing::SizeIs(1));
}

}  // namespace
}  // namespace pando
