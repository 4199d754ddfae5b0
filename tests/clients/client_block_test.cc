// Tests blocks with the C++ client, against a real pandod.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/clients/pandod_fixture.h"
#include "tests/clients/relay.h"

namespace pando {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr uint32_t kKeyBytes = 16;
constexpr uint64_t kBlockBytes = 5000;

std::string Key(char name) { return std::string(kKeyBytes, name); }

KindSpec Spec(std::string identity = "llama") {
  return {.identity = std::move(identity),
          .label = "test",
          .key_bytes = kKeyBytes,
          .shard_bytes = kBlockBytes};
}

class ClientBlockTest : public PandodTest {
 protected:
  std::vector<std::string> MoreFlags() const override {
    return {"--memory", "64MiB"};
  }

  static uint32_t Open(Client& client, const KindSpec& spec = Spec()) {
    return client.blocks().OpenKinds(std::span(&spec, 1)).value()[0].number;
  }
  // Stores a block for each key. Each byte of a block is the first byte of its
  // key.
  static void Store(Client& client, uint32_t kind, const std::string& keys) {
    BlockClient blocks = client.blocks();
    BlockMemory memory = blocks.AttachMemory().value();
    const std::vector<Place> places =
        blocks.Reserve(kStore, {{{.kind = kind, .keys = keys}}}).value();
    for (size_t i = 0; i < places.size(); ++i) {
      std::ranges::fill(memory.At(places[i], kBlockBytes),
                        static_cast<std::byte>(keys[i * kKeyBytes]));
    }
    ASSERT_TRUE(blocks.Publish(kStore).ok());
  }

  static constexpr uint64_t kStore = 1;
};

class ClientBlockTransportTest : public ClientBlockTest,
                                 public testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(, ClientBlockTransportTest, testing::Bool(),
                         [](const auto& transport) {
                           return transport.param ? "lane" : "grpc";
                         });

TEST_P(ClientBlockTransportTest, OneWorkerReadsWhatAnotherHasStored) {
  const auto writer = Connect({.lane = GetParam()});
  Store(*writer, Open(*writer), Key('a') + Key('b'));

  const auto reader = Connect({.lane = GetParam()});
  EXPECT_EQ(reader->transport() == Transport::kLane, GetParam());
  BlockClient blocks = reader->blocks();
  const BlockMemory memory = blocks.AttachMemory().value();
  EXPECT_EQ(memory.epoch(), reader->epoch());
  const std::optional<Kind> kind =
      blocks.FindKinds({{{.identity = "llama"}}}).value()[0];
  ASSERT_TRUE(kind.has_value());
  EXPECT_EQ(kind->spec.shard_bytes, kBlockBytes);
  const std::string keys = Key('a') + Key('b') + Key('c');
  const std::vector<Place> places =
      blocks.Acquire(1, {{{.kind = kind->number, .keys = keys}}}).value();
  ASSERT_EQ(places.size(), 3u);
  EXPECT_THAT(memory.At(places[0], kBlockBytes), Each(std::byte{'a'}));
  EXPECT_THAT(memory.At(places[1], kBlockBytes), Each(std::byte{'b'}));
  EXPECT_EQ(places[2], place::kMissing);
  EXPECT_EQ(reader->GetStats()->blocks->protected_blocks, 2u);

  ASSERT_TRUE(blocks.Release({{1}}).ok());
  EXPECT_EQ(reader->GetStats()->blocks->protected_blocks, 0u);
}

TEST_P(ClientBlockTransportTest, SixteenThousandKeysAreAnswered) {
  const auto client = Connect({.lane = GetParam()});
  const uint32_t kind = Open(*client);
  std::string keys;
  for (uint32_t i = 0; i < 16'384; ++i) {
    keys += std::to_string(100'000'000'000'000'00 + i).substr(0, kKeyBytes);
  }
  EXPECT_THAT(client->blocks().LookUp({{{.kind = kind, .keys = keys}}}).value(),
              Each(place::kMissing));
}

TEST_F(ClientBlockTest, APeekFindsBlocksAndLoadsNothing) {
  const auto client = Connect();
  const uint32_t kind = Open(*client);
  Store(*client, kind, Key('a'));
  const std::string keys = Key('a') + Key('b');
  const std::vector<Place> places =
      client->blocks()
          .LookUp({{{.kind = kind, .keys = keys}}}, {.peek = true})
          .value();
  EXPECT_TRUE(IsPlace(places[0]));
  EXPECT_EQ(places[1], place::kMissing);
  EXPECT_TRUE(
      absl::IsInvalidArgument(client->blocks()
                                  .LookUp({{{.kind = kind, .keys = keys}}},
                                          {.load = true, .peek = true})
                                  .status()));
}

TEST_F(ClientBlockTest, AnAcquireOfAllLocksNothingWhereOneIsMissing) {
  const auto client = Connect();
  const uint32_t kind = Open(*client);
  Store(*client, kind, Key('a'));
  const std::string keys = Key('a') + Key('b');
  EXPECT_THAT(client->blocks()
                  .Acquire(1, {{{.kind = kind, .keys = keys}}}, {.all = true})
                  .value(),
              ElementsAre(place::kReady, place::kMissing));
  EXPECT_EQ(client->GetStats()->blocks->locks, 0u);
}

TEST_F(ClientBlockTest, AShapeLeavesKeysOut) {
  const auto client = Connect();
  const uint32_t kind = Open(*client);
  Store(*client, kind, Key('a') + Key('b') + Key('c'));
  const std::string keys = Key('a') + Key('b') + Key('c');
  const auto look = [&](Shape shape, uint32_t window) {
    std::vector<Place> places = client->blocks()
                                    .LookUp({{{.kind = kind,
                                               .keys = keys,
                                               .shape = shape,
                                               .window = window}}})
                                    .value();
    std::vector<bool> looked_at;
    for (const Place place : places) looked_at.push_back(IsPlace(place));
    return looked_at;
  };
  EXPECT_THAT(look(Shape::kPrefix, 0), ElementsAre(true, true, true));
  EXPECT_THAT(look(Shape::kWindow, 2), ElementsAre(false, true, true));
  EXPECT_THAT(look(Shape::kCheckpoint, 0), ElementsAre(false, false, true));
}

TEST_F(ClientBlockTest, AfterARestartTheMemoryIsToBeAttachedAgain) {
  const auto client = Connect();
  BlockClient blocks = client->blocks();
  ASSERT_TRUE(blocks.AttachMemory().ok());
  pandod_.reset();
  StartPandod();
  const KindSpec spec = Spec();
  ASSERT_TRUE(
      Eventually([&] { return blocks.OpenKinds(std::span(&spec, 1)).ok(); }));
  const uint32_t kind = Open(*client);
  const std::string keys = Key('a');
  EXPECT_THAT(blocks.Reserve(1, {{{.kind = kind, .keys = keys}}}).status(),
              FailsWith(reason::kSessionLost));
  EXPECT_THAT(blocks.Acquire(1, {{{.kind = kind, .keys = keys}}}).status(),
              FailsWith(reason::kSessionLost));
  Store(*client, kind, keys);
}

TEST_F(ClientBlockTest, DiscardedPlacesAreFree) {
  const auto client = Connect();
  const uint32_t kind = Open(*client);
  const std::string keys = Key('a') + Key('b');
  BlockClient blocks = client->blocks();
  ASSERT_TRUE(blocks.Reserve(1, {{{.kind = kind, .keys = keys}}}).ok());
  ASSERT_TRUE(blocks.Publish(1, {{1}}).ok());
  ASSERT_TRUE(blocks.Discard(1).ok());
  const std::vector<Place> places =
      blocks.LookUp({{{.kind = kind, .keys = keys}}}).value();
  EXPECT_EQ(places[0], place::kMissing);
  EXPECT_TRUE(IsPlace(places[1]));
  EXPECT_EQ(client->GetStats()->blocks->reserved_blocks, 0u);
}

TEST_F(ClientBlockTest, AResetKindIsEmpty) {
  const auto client = Connect();
  const uint32_t kind = Open(*client);
  Store(*client, kind, Key('a'));
  BlockClient blocks = client->blocks();
  const Kind renewed = blocks.ResetKinds({{kind}}).value()[0];
  EXPECT_EQ(renewed.generation, 2u);
  EXPECT_THAT(
      blocks.LookUp({{{.kind = renewed.number, .keys = Key('a')}}}).value(),
      ElementsAre(place::kMissing));
}

TEST_F(ClientBlockTest, AKindOfAnotherNamespaceIsNotFound) {
  const auto client = Connect();
  Open(*client);
  const KindName of_a_tenant = {.identity = "llama",
                                .ns = {.extra_key = "tenant"}};
  EXPECT_FALSE(
      client->blocks().FindKinds({{of_a_tenant}}).value()[0].has_value());
}

TEST_F(ClientBlockTest, AKindOfOtherSizesIsRefused) {
  const auto client = Connect();
  Open(*client);
  KindSpec other = Spec();
  other.shard_bytes = 4096;
  EXPECT_THAT(client->blocks().OpenKinds(std::span(&other, 1)).status(),
              FailsWith("LAYOUT_MISMATCH"));
}

TEST_F(ClientBlockTest, WithoutAServerCallsFail) {
  const auto client = Connect();
  const uint32_t kind = Open(*client);
  pandod_->Kill();
  EXPECT_TRUE(
      absl::IsUnavailable(client->blocks()
                              .Acquire(1, {{{.kind = kind, .keys = Key('a')}}})
                              .status()));
}

// A client that calls over gRPC through a relay. A test can make the relay drop
// the answers of pandod, until the test breaks the connection.
class ClientBlockSettlesTest : public ClientBlockTest {
 protected:
  void SetUp() override {
    ClientBlockTest::SetUp();
    relay_.emplace(relay_path(), socket_path());
    auto client = Client::Connect({.address = "unix:" + relay_path(),
                                   .name = "cut off",
                                   .timeout = absl::Seconds(2),
                                   .lane = false});
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    observer_ = Connect();
    kind_ = Open(*client_);
    Store(*client_, kind_, Key('a'));
  }
  void TearDown() override {
    client_.reset();
    observer_.reset();
    relay_.reset();
    ClientBlockTest::TearDown();
  }

  std::string relay_path() const { return folder_ / "relay.sock"; }
  BlockFigures Held() { return observer_->GetStats()->blocks.value(); }

  std::optional<Relay> relay_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Client> observer_;
  uint32_t kind_ = 0;
};

TEST_F(ClientBlockSettlesTest, ALockWithoutAnAnswerIsGivenBack) {
  relay_->Mute();
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      client_->blocks()
          .Acquire(2, {{{.kind = kind_, .keys = Key('a')}}})
          .status()));
  EXPECT_EQ(Held().hits, 1u);
  relay_->Cut();
  EXPECT_TRUE(Eventually([&] { return Held().locks == 0; }));
  EXPECT_EQ(observer_->GetStats()->sessions, 2u);
}

TEST_F(ClientBlockSettlesTest, AReservationWithoutAnAnswerIsGivenBack) {
  relay_->Mute();
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      client_->blocks()
          .Reserve(2, {{{.kind = kind_, .keys = Key('b')}}})
          .status()));
  relay_->Cut();
  EXPECT_TRUE(Eventually([&] { return Held().reserved_blocks == 0; }));
  EXPECT_EQ(Held().published_blocks, 1u);
}

TEST_F(ClientBlockSettlesTest, WhatCouldNotBePublishedIsPublishedLater) {
  ASSERT_TRUE(
      client_->blocks().Reserve(2, {{{.kind = kind_, .keys = Key('b')}}}).ok());
  relay_.reset();
  EXPECT_TRUE(absl::IsUnavailable(client_->blocks().Publish(2)));
  EXPECT_EQ(Held().published_blocks, 1u);
  std::filesystem::remove(relay_path());
  relay_.emplace(relay_path(), socket_path());
  EXPECT_TRUE(Eventually([&] { return Held().published_blocks == 2; }));
}

}  // namespace
}  // namespace pando
