// Tests the thread that serves all lanes, with handlers that the tests define.
#include "service/lane/lane_server.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/methods.h"
#include "clients/lane/lane.h"
#include "core/requests/errors.h"
#include "service/calls/call_policy.h"
#include "service/calls/method_metrics.h"
#include "service/handlers/data_path.h"
#include "tests/lane/lane_pair.h"

namespace pando {
namespace {

constexpr uint32_t kLaneBytes = 64 << 10;
constexpr uint32_t kLongBytes = 2 << 20;
constexpr uint32_t kMaxLanes = 8;
constexpr uint32_t kMaxRequestBytes = 1024;

// Makes `method` run `handle`.
template <typename Request, typename Response>
void Offer(
    MethodPointer<Request, Response>& method, const std::string& name,
    std::function<void()> handle = [] {}) {
  method = MakeMethod<Request, Response>("test", name,
                                         [handle](const Request&, Response&) {
                                           handle();
                                           return absl::OkStatus();
                                         });
}

// Makes all methods of the data path do nothing.
void OfferAll(DataPath& data_path) {
#define PANDO_METHOD(number, field, service, name, role, kind) \
  Offer(data_path.field, #name);
  PANDO_DATA_PATH_METHODS(PANDO_METHOD)
#undef PANDO_METHOD
}

class LaneServerTest : public testing::Test {
 protected:
  LaneServerTest() {
    OfferAll(data_path_);
    Offer(data_path_.match_prefixes, "MatchPrefixes",
          [this] { on_match_prefixes_(); });
    Offer(data_path_.get_stats, "GetStats", [this] { on_get_stats_(); });
    server_ = *LaneServer::Start({.arena_bytes = kLaneBytes,
                                  .max_lanes = kMaxLanes,
                                  .max_request_bytes = kMaxRequestBytes,
                                  .spin = absl::ZeroDuration()},
                                 &policy_, data_path_, metrics_);
  }

  absl::StatusOr<LaneDescriptors> Open(uint64_t session) {
    return server_->Open(
        {.session = SessionId(session), .process = {}, .authorization = ""});
  }

  static std::shared_ptr<lane::Lane> Map(LaneDescriptors lane) {
    std::string error;
    return lane::Lane::Map(lane.memory, std::move(lane.doorbell), error);
  }
  std::shared_ptr<lane::Lane> OpenLane(uint64_t session) {
    return Map(*Open(session));
  }

  // A test sets these functions before the first call.
  std::function<void()> on_match_prefixes_ = [] {};
  std::function<void()> on_get_stats_ = [] {};
  CallPolicy policy_;
  DataPath data_path_;
  RpcMetrics metrics_;
  std::unique_ptr<LaneServer> server_;
};

TEST_F(LaneServerTest, ALaneThatIsFullOfLongCallsHoldsUpNoOther) {
  constexpr int kRings = 10;
  const std::shared_ptr<lane::Lane> full = OpenLane(1);
  const std::shared_ptr<lane::Lane> other = OpenLane(2);
  lane::Call other_call = Request(*other, "", 4096, lane::Method::kGetStats);
  int long_calls = 0;
  int long_calls_before_other = 0;
  on_match_prefixes_ = [&] {
    if (++long_calls == kRings) other_call.Submit();
    const auto end = lane::Lane::Clock::now() + std::chrono::milliseconds(1);
    while (lane::Lane::Clock::now() < end) {
    }
  };
  on_get_stats_ = [&] { long_calls_before_other = long_calls; };
  std::vector<lane::Call> calls;
  std::vector<lane::Call*> submitted;
  calls.reserve(lane::kSlots);
  for (uint32_t i = 0; i < lane::kSlots; ++i) {
    calls.push_back(Request(*full, "", 256, lane::Method::kMatchPrefixes));
    submitted.push_back(&calls.back());
  }
  full->Submit(submitted);
  for (lane::Call& call : calls) {
    EXPECT_EQ(call.Await(Soon()), lane::Call::Outcome::kAnswered);
  }
  EXPECT_EQ(other_call.Await(Soon()), lane::Call::Outcome::kAnswered);
  EXPECT_LE(long_calls_before_other, kRings + 1);
}

// Returns the encoding of a MatchPrefixes request with `prompts` prompts of 240
// tokens.
std::string Prompts(int prompts) {
  v1::MatchPrefixesRequest request;
  for (int i = 0; i < prompts; ++i) {
    auto& tokens = *request.add_queries()->mutable_tokens();
    for (int token = 0; token < 240; ++token) tokens.Add(i);
  }
  return request.SerializeAsString();
}

// Lanes that take long requests. The handler of MatchPrefixes takes steps.
class LongCallTest : public testing::Test {
 protected:
  using Scoring = v1::MatchPrefixesRequest;
  static constexpr int kSteps = 20;

  LongCallTest() {
    OfferAll(data_path_);
    data_path_.match_prefixes = MakeMethod<Scoring, v1::MatchPrefixesResponse>(
        "test", "MatchPrefixes",
        [this](const Scoring& in, auto&,
               WaitingCall& call) -> std::optional<absl::Status> {
          if (call.is_cancelled()) return absl::CancelledError();
          return TakeStep(in, call);
        });
    Offer(data_path_.insert, "Insert", [this] { on_insert_(); });
    Offer(data_path_.get_stats, "GetStats", [this] { on_get_stats_(); });
    server_ = *LaneServer::Start({.arena_bytes = 2 * kLongBytes,
                                  .max_lanes = 70,
                                  .max_request_bytes = kLongBytes,
                                  .spin = absl::ZeroDuration()},
                                 &policy_, data_path_, metrics_);
  }

  std::shared_ptr<lane::Lane> OpenLane() {
    std::string error;
    LaneDescriptors lane =
        *server_->Open({.session = SessionId(++last_session_),
                        .process = {},
                        .authorization = ""});
    return lane::Lane::Map(lane.memory, std::move(lane.doorbell), error);
  }

  // Takes one of the kSteps steps of a call. A step takes longer than the
  // lanes' thread may go without looking for rings.
  std::optional<absl::Status> TakeStep(const Scoring& request,
                                       WaitingCall& call) {
    ++steps_;
    on_step_(request);
    const auto end = lane::Lane::Clock::now() + std::chrono::microseconds(200);
    while (lane::Lane::Clock::now() < end) {
    }
    if (++steps_of_[&call] < kSteps) {
      if (call.OnStep()) return std::nullopt;
      ADD_FAILURE() << "the lanes' thread takes the steps";
    }
    steps_of_.erase(&call);
    return absl::OkStatus();
  }

  static void ExpectAnswered(std::vector<lane::Call>& calls) {
    for (lane::Call& call : calls) {
      EXPECT_EQ(call.Await(Soon()), lane::Call::Outcome::kAnswered);
      EXPECT_EQ(call.code(), 0u);
    }
  }

  // A test sets these functions before the first call.
  std::function<void(const Scoring&)> on_step_ = [](const Scoring&) {};
  std::function<void()> on_insert_ = [] {};
  std::function<void()> on_get_stats_ = [] {};
  int steps_ = 0;
  std::map<WaitingCall*, int> steps_of_;
  uint64_t last_session_ = 0;
  CallPolicy policy_;
  DataPath data_path_;
  RpcMetrics metrics_;
  std::unique_ptr<LaneServer> server_;
};

TEST_F(LongCallTest, AShortCallIsServedBetweenTwoStepsOfManyLongOnes) {
  constexpr int kLanes = 64;
  const std::shared_ptr<lane::Lane> other = OpenLane();
  std::optional<lane::Call> short_call;
  std::vector<int> steps_before;  // before each short call was answered
  int submitted_at = 0;
  on_step_ = [&](const Scoring&) {
    if (steps_ % 50 != 0 || short_call.has_value()) return;
    short_call.emplace(Request(*other, "", 256, lane::Method::kGetStats));
    short_call->Submit();
    submitted_at = steps_;
  };
  on_get_stats_ = [&] {
    steps_before.push_back(steps_ - submitted_at);
    short_call.reset();
  };
  std::vector<lane::Call> calls;
  calls.reserve(kLanes);
  for (int i = 0; i < kLanes; ++i) {
    calls.push_back(
        Request(*OpenLane(), Prompts(100), 256, lane::Method::kMatchPrefixes));
  }
  for (lane::Call& call : calls) call.Submit();
  ExpectAnswered(calls);
  EXPECT_EQ(steps_, kLanes * kSteps);
  EXPECT_GE(steps_before.size(), 10u);
  for (const int steps : steps_before) EXPECT_LE(steps, 1);
}

TEST_F(LongCallTest, ALaneWaitsForAsManyBytesOfOthersAsItAsksFor) {
  constexpr int kLanes = 8;
  const std::shared_ptr<lane::Lane> other = OpenLane();
  lane::Call smaller = Request(*other, Prompts(20), 256, lane::Method::kInsert);
  int begun = 0;
  int steps_before_smaller = 0;
  on_step_ = [&](const Scoring&) {
    begun = std::max(begun, static_cast<int>(steps_of_.size()));
    if (steps_ == kSteps / 2) smaller.Submit();
  };
  on_insert_ = [&] { steps_before_smaller = steps_; };
  std::vector<lane::Call> calls;
  calls.reserve(kLanes);
  for (int i = 0; i < kLanes; ++i) {
    calls.push_back(Request(*OpenLane(), Prompts(1'500), 256,
                            lane::Method::kMatchPrefixes));
  }
  for (lane::Call& call : calls) call.Submit();
  ExpectAnswered(calls);
  EXPECT_EQ(smaller.Await(Soon()), lane::Call::Outcome::kAnswered);
  EXPECT_LE(steps_before_smaller, kSteps / 2 + 1);
  EXPECT_LE(begun, 1);  // only one request is kept in parts
}

TEST_F(LongCallTest, CallsOfALaneBeginInTheirOrder) {
  const std::shared_ptr<lane::Lane> lane = OpenLane();
  int steps_before_short = 0;
  on_get_stats_ = [&] { steps_before_short = steps_; };
  std::vector<lane::Call> calls;
  calls.push_back(
      Request(*lane, Prompts(1'000), 256, lane::Method::kMatchPrefixes));
  calls.push_back(Request(*lane, "", 256, lane::Method::kGetStats));
  std::vector<lane::Call*> submitted = {&calls[0], &calls[1]};
  lane->Submit(submitted);
  ExpectAnswered(calls);
  EXPECT_EQ(steps_before_short, kSteps);
}

TEST_F(LongCallTest, ARequestThatIsParsedInPartsIsParsedAsAWhole) {
  const std::shared_ptr<lane::Lane> lane = OpenLane();
  std::string handled;
  on_step_ = [&](const Scoring& request) {
    handled = request.SerializeAsString();
  };
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 40; ++round) {
    std::string bytes = Prompts(20 + static_cast<int>(random() % 1'000));
    for (int damaged = round % 3; damaged > 0; --damaged) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    handled = "none";
    lane::Call call = Request(*lane, bytes, 4096, lane::Method::kMatchPrefixes);
    call.Submit();
    ASSERT_EQ(call.Await(Soon()), lane::Call::Outcome::kAnswered);
    Scoring whole;
    const bool is_whole = whole.ParseFromString(bytes);
    if (round % 3 == 0 || call.code() == 0) {
      EXPECT_TRUE(is_whole);
      EXPECT_EQ(handled, whole.SerializeAsString());
    } else {
      EXPECT_EQ(handled, "none");
    }
  }
}

TEST_F(LongCallTest, ALaneMayBeClosedAtAnyPartOfACall) {
  for (int round = 0; round < 20; ++round) {
    const std::shared_ptr<lane::Lane> lane = OpenLane();
    lane::Call call =
        Request(*lane, Prompts(1'000), 256, lane::Method::kMatchPrefixes);
    call.Submit();
    for (int yields = 0; yields < 100 * round; ++yields)
      std::this_thread::yield();
    server_->Close(SessionId(last_session_));
    EXPECT_NE(call.Await(Soon()), lane::Call::Outcome::kTimedOut);
  }
}

// Returns how much memory the pages of a memory file take.
int64_t BytesOf(const UniqueFd& memory) {
  struct stat file = {};
  fstat(memory.get(), &file);
  return int64_t{file.st_blocks} * 512;
}

void FillUp(const LaneDescriptors& lane) {
  void* const base = mmap(nullptr, lane.memory_bytes, PROT_WRITE, MAP_SHARED,
                          lane.memory.get(), 0);
  ASSERT_NE(base, MAP_FAILED);
  std::memset(static_cast<std::byte*>(base) + lane::kArenaOffset, 1,
              kLaneBytes);
  munmap(base, lane.memory_bytes);
}

TEST_F(LaneServerTest, LanesThatAreKeptAfterTheirEndTakeNoMemory) {
  std::vector<LaneDescriptors> kept;
  while (kept.size() < 3 * kMaxLanes) {
    server_->Close(SessionId(kept.size()));
    absl::StatusOr<LaneDescriptors> lane = Open(kept.size() + 1);
    if (!lane.ok()) {
      EXPECT_TRUE(absl::IsResourceExhausted(lane.status())) << lane.status();
      std::this_thread::yield();
      continue;
    }
    FillUp(*lane);
    kept.push_back(*std::move(lane));
    int64_t bytes = 0;
    for (const LaneDescriptors& each : kept) bytes += BytesOf(each.memory);
    // One lane is open. The lanes that were closed last may still have their
    // memory.
    EXPECT_LE(bytes,
              (kMaxLanes + 1) * int64_t{kLaneBytes} +
                  static_cast<int64_t>(kept.size() * lane::kArenaOffset));
  }
}

TEST_F(LaneServerTest, ASessionThatOpensManyLanesIsRefusedAndKeepsItsOwn) {
  std::shared_ptr<lane::Lane> own;
  uint32_t opened = 0;
  auto next = Open(1);
  for (; next.ok(); next = Open(1)) {
    own = Map(*std::move(next));
    ++opened;
  }
  EXPECT_EQ(opened, LaneServer::kMaxOfSession);
  EXPECT_EQ(ReasonOf(next.status()), Reason::kSessionLimit) << next.status();
  EXPECT_TRUE(Open(2).ok());
  lane::Call call = Request(*own, "", 4096, lane::Method::kGetStats);
  call.Submit();
  EXPECT_EQ(call.Await(Soon()), lane::Call::Outcome::kAnswered);
}

TEST_F(LaneServerTest, ARequestThatIsTooLargeIsRefused) {
  const std::shared_ptr<lane::Lane> lane = OpenLane(1);
  lane::Call fits = Request(*lane, std::string(kMaxRequestBytes, 0), 256,
                            lane::Method::kGetStats);
  lane::Call too_large = Request(*lane, std::string(kMaxRequestBytes + 1, 0),
                                 256, lane::Method::kGetStats);
  for (lane::Call* call : {&fits, &too_large}) {
    call->Submit();
    ASSERT_EQ(call->Await(Soon()), lane::Call::Outcome::kAnswered);
  }
  EXPECT_NE(fits.code(),
            static_cast<uint32_t>(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(too_large.code(),
            static_cast<uint32_t>(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace pando
