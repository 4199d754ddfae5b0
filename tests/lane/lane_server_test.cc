// The thread that serves all lanes, with handlers of the test's own.
#include "service/lane/lane_server.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "clients/lane/lane.h"
#include "service/calls/call_policy.h"
#include "service/calls/method_metrics.h"
#include "service/handlers/data_path.h"
#include "tests/lane/lane_pair.h"

namespace pando {
namespace {

constexpr uint32_t kLaneBytes = 64 << 10;
constexpr uint32_t kMaxLanes = 8;
constexpr uint32_t kMaxRequestBytes = 1024;

// Fills in a method that runs `handle`.
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

class LaneServerTest : public testing::Test {
 protected:
  LaneServerTest() {
    Offer(data_path_.match_prefix, "MatchPrefix");
    Offer(data_path_.match_prefixes, "MatchPrefixes",
          [this] { on_match_prefixes_(); });
    Offer(data_path_.insert, "Insert");
    Offer(data_path_.lock, "Lock");
    Offer(data_path_.unlock, "Unlock");
    Offer(data_path_.allocate_pages, "AllocatePages");
    Offer(data_path_.free_pages, "FreePages");
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

  // Set before the first call.
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

// What its pages take.
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
    absl::StatusOr<LaneDescriptors> lane = Open(1);
    if (!lane.ok()) {
      EXPECT_TRUE(absl::IsResourceExhausted(lane.status())) << lane.status();
      std::this_thread::yield();
      continue;
    }
    FillUp(*lane);
    kept.push_back(*std::move(lane));
    int64_t bytes = 0;
    for (const LaneDescriptors& each : kept) bytes += BytesOf(each.memory);
    // One is open, the others were closed lately.
    EXPECT_LE(bytes,
              (kMaxLanes + 1) * int64_t{kLaneBytes} +
                  static_cast<int64_t>(kept.size() * lane::kArenaOffset));
  }
}

TEST_F(LaneServerTest, ASessionThatIsRefusedAnotherLaneKeepsItsOwn) {
  std::shared_ptr<lane::Lane> own;
  auto next = Open(1);
  for (; next.ok(); next = Open(1)) own = Map(*std::move(next));
  EXPECT_TRUE(absl::IsResourceExhausted(next.status())) << next.status();
  // What is to be closed is closed before another one is opened.
  while (!Open(2).ok()) std::this_thread::yield();
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
