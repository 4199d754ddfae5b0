// Tests one stream over real sockets.

#include "events/routers/kv_event_stream.h"

#include <unistd.h>

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>
#include <zmq_addon.hpp>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "os/monotonic_clock.h"
#include "tests/events/routers/listed_changes.h"
#include "tests/events/stored_pages.h"

namespace pando {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using Json = nlohmann::json;

constexpr uint32_t kPageTokens = 2;
constexpr uint64_t kEndMark = std::numeric_limits<uint64_t>::max();

struct Received {
  std::string topic;
  uint64_t sequence;
  // The type and the number of blocks of each event, such as "BlockStored 3".
  std::vector<std::string> events;
};

uint64_t NumberIn(const std::string& bytes) {
  uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | uint8_t(byte);
  return number;
}

std::vector<std::string> Spell(const std::string& payload) {
  std::vector<std::string> events;
  if (payload.empty()) return events;
  const Json batch = Json::from_msgpack(payload);
  for (const Json& event : batch[1]) {
    events.push_back(event["type"].get<std::string>());
    if (event.contains("block_hashes")) {
      absl::StrAppend(&events.back(), " ", event["block_hashes"].size());
    }
  }
  return events;
}

// Returns a message of three parts; none if nothing comes within `patience`.
std::optional<Received> Receive(zmq::socket_t& socket, bool has_delimiter,
                                std::chrono::milliseconds patience) {
  socket.set(zmq::sockopt::rcvtimeo, static_cast<int>(patience.count()));
  std::vector<zmq::message_t> parts;
  if (!zmq::recv_multipart(socket, std::back_inserter(parts))) {
    return std::nullopt;
  }
  const size_t first = has_delimiter ? 1 : 0;
  return Received{parts[first].to_string(),
                  NumberIn(parts[first + 1].to_string()),
                  Spell(parts[first + 2].to_string())};
}

class KvEventStreamTest : public testing::Test {
 protected:
  KvEventStreamTest() { std::filesystem::create_directories(folder_); }
  ~KvEventStreamTest() override {
    stream_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::string Endpoint(const std::string& name) const {
    return absl::StrCat("ipc://", folder_, "/", name);
  }

  void Start(std::vector<std::string> topics = {"topic"}) {
    KvEventStream::Config config{.path = absl::StrCat(folder_, "/sequence"),
                                 .history = history_};
    for (size_t i = 0; i < topics.size(); ++i) {
      config.workers.push_back({Endpoint(absl::StrCat("events", i)),
                                Endpoint(absl::StrCat("replay", i)),
                                topics[i]});
    }
    auto stream = KvEventStream::Start(config);
    ASSERT_TRUE(stream.ok()) << stream.status();
    stream_ = *std::move(stream);
  }

  // Stores pages that are a prompt of their own.
  void Store(uint32_t first, uint32_t count) {
    const std::vector<PageId> run = Pages(first, count);
    pages_.Store(StoredPages(run, kPageTokens, 10 * first, kPaddingPage, {}));
    stream_->Stored(pages_, run);
    stream_->EndTurn(&pages_);
  }

  void Remove(uint32_t first, uint32_t count) {
    stream_->Removed(pages_, Pages(first, count), EvictionReason::kRequest);
    pages_.Remove(Pages(first, count));
    stream_->EndTurn(&pages_);
  }

  zmq::socket_t Connect(zmq::socket_type type, const std::string& endpoint) {
    zmq::socket_t socket(context_, type);
    socket.set(zmq::sockopt::linger, 0);
    socket.connect(endpoint);
    return socket;
  }

  // Subscribes, and turns the stream until it counts the subscriber. The
  // announcement that follows is left for the caller to receive.
  zmq::socket_t Subscribe(const std::string& topic = "",
                          const std::string& endpoint = "events0") {
    zmq::socket_t socket = Connect(zmq::socket_type::sub, Endpoint(endpoint));
    socket.set(zmq::sockopt::subscribe, topic);
    const uint64_t before = stream_->figures().subscribers;
    while (stream_->figures().subscribers == before) stream_->EndTurn(&pages_);
    return socket;
  }

  // Turns the stream until a message comes, and returns the message. If none
  // comes, the test fails, and an end mark is returned.
  Received Next(zmq::socket_t& socket, bool has_delimiter = false) {
    for (int turn = 0; turn < 10'000; ++turn) {
      stream_->EndTurn(&pages_);
      if (auto received =
              Receive(socket, has_delimiter, std::chrono::milliseconds(1))) {
        return *received;
      }
    }
    ADD_FAILURE() << "nothing comes";
    return {.topic = "", .sequence = kEndMark, .events = {}};
  }

  void ExpectNothing(zmq::socket_t& socket) {
    EXPECT_FALSE(
        Receive(socket, false, std::chrono::milliseconds(50)).has_value());
  }

  // Requests the frames from `first` on.
  static void Ask(zmq::socket_t& socket, uint64_t first) {
    std::string bytes;
    for (int shift = 56; shift >= 0; shift -= 8) {
      bytes.push_back(static_cast<char>(first >> shift));
    }
    socket.send(zmq::message_t(), zmq::send_flags::sndmore);
    socket.send(zmq::buffer(bytes), zmq::send_flags::none);
  }

  // Requests the frames from `first` on. Returns the answer, which ends with
  // the end mark.
  std::vector<Received> Replay(uint64_t first) {
    zmq::socket_t socket =
        Connect(zmq::socket_type::dealer, Endpoint("replay0"));
    Ask(socket, first);
    std::vector<Received> answer;
    do {
      answer.push_back(Next(socket, true));
    } while (answer.back().sequence != kEndMark);
    return answer;
  }

  // Asks again after each answer, until the stream can send no more answers
  // because `peer` reads none.
  void AskUntilAnswersWait(zmq::socket_t& peer, uint64_t first) {
    const absl::Duration patience = absl::Seconds(1);
    uint64_t answered = stream_->figures().answered_replays;
    absl::Time last = MonotonicNow();
    for (Ask(peer, first); MonotonicNow() - last < patience;) {
      stream_->EndTurn(&pages_);
      if (stream_->figures().answered_replays == answered) continue;
      ++answered;
      last = MonotonicNow();
      Ask(peer, first);
    }
  }

  // Turns the stream until it has made `count` announcements. The clock decides
  // when the next one is allowed.
  void WaitForNextAnnouncement(uint64_t count) {
    while (stream_->figures().announcements < count) stream_->EndTurn(&pages_);
  }

  const std::string folder_ =
      absl::StrCat(testing::TempDir(), "kv_event_stream_test.", getpid());
  FrameHistory::Limits history_{.frames = 100, .bytes = 1'000'000};
  CachedPages pages_{100'000, kPageTokens};
  zmq::context_t context_;
  std::unique_ptr<KvEventStream> stream_;
};

TEST_F(KvEventStreamTest, ASubscriberHearsWhatIsCachedAndThenWhatHappens) {
  Start();
  Store(1, 3);
  Store(10, 2);
  Remove(11, 1);
  zmq::socket_t socket = Subscribe();
  const Received all = Next(socket);
  EXPECT_THAT(all.events,
              testing::UnorderedElementsAre("AllBlocksCleared", "BlockStored 3",
                                            "BlockStored 1"));
  EXPECT_EQ(all.events[0], "AllBlocksCleared");
  EXPECT_EQ(all.topic, "topic");
  Store(20, 4);
  const Received live = Next(socket);
  EXPECT_THAT(live.events, ElementsAre("BlockStored 4"));
  EXPECT_EQ(live.sequence, all.sequence + 1);
  Remove(20, 4);
  EXPECT_THAT(Next(socket).events, ElementsAre("BlockRemoved 4"));
}

TEST_F(KvEventStreamTest, WithoutSubscribersNothingIsPublished) {
  Start();
  EXPECT_FALSE(stream_->EndTurn(&pages_));
  Store(1, 3);
  EXPECT_EQ(stream_->figures().frames, 0);
  uint64_t last = 0;
  {
    zmq::socket_t socket = Subscribe();
    EXPECT_THAT(Next(socket).events,
                ElementsAre("AllBlocksCleared", "BlockStored 3"));
    Store(10, 1);
    last = Next(socket).sequence;
  }
  while (stream_->EndTurn(&pages_)) continue;
  Store(20, 2);
  EXPECT_EQ(stream_->figures().frames, 2);
  zmq::socket_t socket = Subscribe();
  const Received all = Next(socket);
  EXPECT_EQ(all.sequence, last + 1);
  EXPECT_THAT(all.events,
              testing::UnorderedElementsAre("AllBlocksCleared", "BlockStored 3",
                                            "BlockStored 1", "BlockStored 2"));
}

TEST_F(KvEventStreamTest, WhereThePagesAreNotKnownItAsksForThemAndThenTells) {
  Start();
  EXPECT_FALSE(stream_->EndTurn(nullptr));
  zmq::socket_t socket = Connect(zmq::socket_type::sub, Endpoint("events0"));
  socket.set(zmq::sockopt::subscribe, "");
  while (!stream_->EndTurn(nullptr)) continue;
  EXPECT_EQ(stream_->figures().announcements, 0);
  EXPECT_TRUE(stream_->EndTurn(&pages_));
  EXPECT_THAT(Next(socket).events, ElementsAre("AllBlocksCleared"));
}

TEST_F(KvEventStreamTest, WhatIsHeldIsReplayed) {
  Start();
  zmq::socket_t socket = Subscribe();
  const uint64_t first = Next(socket).sequence;
  Store(1, 1);
  Store(2, 2);
  const std::vector<Received> answer = Replay(first + 1);
  ASSERT_THAT(answer, SizeIs(3));
  EXPECT_EQ(answer[0].sequence, first + 1);
  EXPECT_EQ(answer[0].topic, "topic");
  EXPECT_THAT(answer[0].events, ElementsAre("BlockStored 1"));
  EXPECT_THAT(answer[1].events, ElementsAre("BlockStored 2"));
  EXPECT_EQ(stream_->figures().answered_replays, 1);
  EXPECT_EQ(stream_->figures().announcements, 1);
}

TEST_F(KvEventStreamTest, WhoMissedNothingIsAnsweredTheEndMark) {
  Start();
  zmq::socket_t socket = Subscribe();
  const uint64_t first = Next(socket).sequence;
  EXPECT_THAT(Replay(first + 1), SizeIs(1));
  EXPECT_EQ(stream_->figures().answered_replays, 1);
  EXPECT_EQ(stream_->figures().refused_replays, 0);
}

TEST_F(KvEventStreamTest, WhoDoesNotReadAnswersKeepsNobodyFromReplays) {
  Start();
  Store(1, 500);
  zmq::socket_t reader = Subscribe();
  const uint64_t first = Next(reader).sequence;
  {
    zmq::socket_t idle = Connect(zmq::socket_type::dealer, Endpoint("replay0"));
    AskUntilAnswersWait(idle, first);
    for (int i = 0; i < 2'000; ++i) {
      Ask(idle, first);
      stream_->EndTurn(&pages_);
    }
    EXPECT_THAT(Replay(first), SizeIs(2));
  }
  EXPECT_THAT(Replay(first), SizeIs(2));
}

TEST_F(KvEventStreamTest, WhatIsNotHeldIsAnnouncedAnew) {
  history_.frames = 2;
  Start();
  zmq::socket_t socket = Subscribe();
  const uint64_t first = Next(socket).sequence;
  for (uint32_t page = 1; page <= 3; ++page) Store(page, 1);
  for (int i = 0; i < 3; ++i) Next(socket);
  for (const uint64_t unheld : {uint64_t{0}, first + 1, first + 100}) {
    const std::vector<Received> answer = Replay(unheld);
    ASSERT_THAT(answer, SizeIs(1)) << unheld;
    EXPECT_THAT(answer[0].events, IsEmpty());
  }
  EXPECT_EQ(stream_->figures().refused_replays, 3);
  const Received all = Next(socket);
  EXPECT_THAT(all.events, ElementsAre("AllBlocksCleared", "BlockStored 1",
                                      "BlockStored 1", "BlockStored 1"));
  EXPECT_EQ(all.sequence, first + 4);
}

TEST_F(KvEventStreamTest, ThereIsAtMostOneAnnouncementASecond) {
  Start();
  const absl::Time begin = MonotonicNow();
  Subscribe();
  WaitForNextAnnouncement(1);
  for (int i = 0; i < 5; ++i) Replay(0);
  WaitForNextAnnouncement(2);
  EXPECT_GE(MonotonicNow() - begin, absl::Seconds(1));
  EXPECT_EQ(stream_->figures().announcements, 2);
}

TEST_F(KvEventStreamTest, WhatTiersHaveIsToldAfterThePoolAndAnewWhenAllIs) {
  ListedChanges host(kPageTokens);
  ListedChanges disk(kPageTokens);
  Start();
  stream_->FollowTiers(&host, &disk);
  host.StorePrompt(10, 2);
  disk.StorePrompt(10, 5);
  Store(1, 3);
  zmq::socket_t socket = Subscribe();
  EXPECT_THAT(Next(socket).events,
              ElementsAre("AllBlocksCleared", "BlockStored 3"));
  EXPECT_THAT(Next(socket).events,
              ElementsAre("BlockStored 2", "BlockStored 5"));
  host.Remove(12);
  disk.Store(16, 15, 6);
  EXPECT_THAT(Next(socket).events,
              ElementsAre("BlockRemoved 1", "BlockStored 1"));
  stream_->Cleared();
  EXPECT_THAT(
      Next(socket).events,
      ElementsAre("AllBlocksCleared", "BlockStored 1", "BlockStored 6"));
}

TEST_F(KvEventStreamTest, ATierIsFollowedWhileNobodyListens) {
  ListedChanges disk(kPageTokens);
  Start();
  stream_->FollowTiers(nullptr, &disk);
  EXPECT_FALSE(stream_->EndTurn(&pages_));
  disk.StorePrompt(10, 3);
  EXPECT_FALSE(stream_->EndTurn(&pages_));
  disk.Remove(13);
  EXPECT_FALSE(stream_->EndTurn(&pages_));
  EXPECT_EQ(stream_->figures().frames, 0);
  zmq::socket_t socket = Subscribe();
  EXPECT_THAT(Next(socket).events, ElementsAre("AllBlocksCleared"));
  EXPECT_THAT(Next(socket).events, ElementsAre("BlockStored 2"));
}

TEST_F(KvEventStreamTest, AnAnnouncementNamesParentsFirst) {
  Start();
  Store(1, 5'000);
  zmq::socket_t socket = Subscribe();
  std::vector<std::string> events;
  for (size_t stored = 0; stored < 5'000;) {
    for (const std::string& event : Next(socket).events) {
      events.push_back(event);
      if (event.starts_with("BlockStored "))
        stored += std::stoul(event.substr(12));
    }
  }
  EXPECT_EQ(events[0], "AllBlocksCleared");
  EXPECT_THAT(events, SizeIs(3));
}

TEST_F(KvEventStreamTest, TheNumbersGoOnAfterARestartAndAllIsToldAnew) {
  Start();
  zmq::socket_t before = Subscribe();
  const uint64_t last = Next(before).sequence;
  stream_.reset();
  const auto farewell = Receive(before, false, std::chrono::seconds(10));
  ASSERT_TRUE(farewell.has_value());
  EXPECT_THAT(farewell->events, ElementsAre("AllBlocksCleared"));
  EXPECT_EQ(farewell->sequence, last + 1);
  Start();
  zmq::socket_t after = Subscribe();
  const Received first = Next(after);
  EXPECT_EQ(first.sequence, last + 2);
  EXPECT_THAT(first.events, ElementsAre("AllBlocksCleared"));
}

TEST_F(KvEventStreamTest, EachWorkerHasTheSameStreamUnderATopicOfItsOwn) {
  Start({"kv@one@m", "kv@two@m"});
  zmq::socket_t one = Subscribe("kv@one@m", "events0");
  const Received first = Next(one);
  zmq::socket_t two = Subscribe("kv@two@m", "events1");
  Store(1, 1);
  const Received of_one = Next(one);
  const Received of_two = Next(two);
  EXPECT_EQ(of_one.topic, "kv@one@m");
  EXPECT_EQ(of_two.topic, "kv@two@m");
  EXPECT_EQ(of_one.sequence, first.sequence + 1);
  EXPECT_EQ(of_two.sequence, of_one.sequence);
  EXPECT_EQ(stream_->figures().subscribers, 2);
}

TEST_F(KvEventStreamTest, WhoDoesNotReadMissesFramesAndKeepsNobodyUp) {
  Start();
  zmq::socket_t idle = Connect(zmq::socket_type::sub, Endpoint("events0"));
  idle.set(zmq::sockopt::rcvhwm, 1);
  idle.set(zmq::sockopt::subscribe, "");
  zmq::socket_t reader = Subscribe();
  while (stream_->figures().subscribers < 2) stream_->EndTurn(&pages_);
  uint64_t last = Next(reader).sequence;
  // Sends more frames than the socket's buffers and the queue of waiting frames
  // can hold.
  while (stream_->figures().dropped_frames == 0) {
    Store(1, 2'000);
    const uint64_t stored = Next(reader).sequence;
    Remove(1, 2'000);
    EXPECT_GT(stored, last);
    last = Next(reader).sequence;
  }
}

TEST_F(KvEventStreamTest, WhoLeavesIsNotCountedAnyMore) {
  Start();
  {
    zmq::socket_t socket = Subscribe();
    EXPECT_EQ(stream_->figures().subscribers, 1);
  }
  while (stream_->figures().subscribers > 0) stream_->EndTurn(&pages_);
}

TEST_F(KvEventStreamTest, WhatIsNoSubscriptionCountsNobody) {
  Start();
  zmq::socket_t reader = Subscribe();
  zmq::socket_t other = Connect(zmq::socket_type::xsub, Endpoint("events0"));
  other.send(zmq::str_buffer("words"), zmq::send_flags::none);
  other.send(zmq::str_buffer("\1"), zmq::send_flags::none);
  WaitForNextAnnouncement(2);
  EXPECT_EQ(stream_->figures().subscribers, 2);
}

TEST_F(KvEventStreamTest, WhatIsNoRequestHasNoAnswer) {
  Start();
  zmq::socket_t socket = Connect(zmq::socket_type::dealer, Endpoint("replay0"));
  for (const std::string content : {"", "short", "more than eight bytes"}) {
    socket.send(zmq::message_t(), zmq::send_flags::sndmore);
    socket.send(zmq::buffer(content), zmq::send_flags::none);
  }
  socket.send(zmq::str_buffer("one part"), zmq::send_flags::none);
  EXPECT_THAT(Replay(0), SizeIs(1));
  ExpectNothing(socket);
}

TEST_F(KvEventStreamTest, ATopicIsAsLongAsCanBeSubscribedTo) {
  const std::string longest(1'000, 'x');
  Start({longest});
  zmq::socket_t socket = Subscribe(longest);
  EXPECT_EQ(Next(socket).topic, longest);
  const auto longer = KvEventStream::Start(
      {.workers = {{.endpoint = Endpoint("other"), .topic = longest + "x"}},
       .path = absl::StrCat(folder_, "/other")});
  EXPECT_EQ(longer.status().message(),
            absl::StrCat("kv-events-topic with the names in it has 1001 bytes "
                         "for ",
                         Endpoint("other"), "; must be at most 1000"));
}

TEST_F(KvEventStreamTest, AnEndpointThatCannotBeHadIsNamed) {
  const auto said = [this](const std::string& endpoint) {
    return std::string(
        KvEventStream::Start({.workers = {{.endpoint = endpoint}},
                              .path = absl::StrCat(folder_, "/sequence")})
            .status()
            .message());
  };
  EXPECT_EQ(said("tcp://198.51.100.1:7777"),
            "tcp://198.51.100.1:7777 cannot be bound: Cannot assign requested "
            "address");
  EXPECT_EQ(said("tcp://localhost:7777"),
            "tcp://localhost:7777 cannot be bound: its host must be an IP "
            "address, a network interface or *");
}

}  // namespace
}  // namespace pando
