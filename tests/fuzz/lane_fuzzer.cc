// Runs the bytes as the acts of a hostile worker on its lane. The worker makes
// calls with requests of any bytes, overwrites any word, publishes slots that
// it has not filled in, and goes away in the middle. pandod must neither read
// nor write outside the lane, must answer each call that it takes exactly once,
// and must keep the cache whole.

#include <fuzzer/FuzzedDataProvider.h>
#include <google/protobuf/stubs/logging.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "core/block_cache.h"
#include "core/operators/gauges.h"
#include "core/prefix_cache.h"
#include "lane/layout.h"
#include "pando/v1/prefix_cache.pb.h"
#include "service/calls/call_policy.h"
#include "service/calls/method_metrics.h"
#include "service/handlers/admin_service.h"
#include "service/handlers/block_service.h"
#include "service/handlers/data_path.h"
#include "service/handlers/pending_matches.h"
#include "service/handlers/pool_service.h"
#include "service/handlers/prefix_cache_service.h"
#include "service/handlers/stepped_calls.h"
#include "service/lane/lane_connection.h"
#include "service/lane/lane_methods.h"
#include "service/rpc/rpc_server.h"
#include "service/self_check.h"

namespace pando {
namespace {

constexpr uint64_t kEpoch = 7;
constexpr uint32_t kMaxTokens = 64;
constexpr uint32_t kCapacity = 24;
constexpr uint32_t kPageTokens = 2;
constexpr uint32_t kArenaBytes = 8192;
constexpr size_t kLaneBytes = lane::kArenaOffset + kArenaBytes;
constexpr uint64_t kMemoryBytes = 16 * kPlaceBytes;
constexpr int kMaxSteps = 300;

void Expect(bool holds, const char* what) {
  if (holds) return;
  std::cerr << what << std::endl;
  std::abort();
}

class HostileWorker {
 public:
  explicit HostileWorker(FuzzedDataProvider& bytes) : bytes_(bytes) {
    cache_.OpenSession(kSession, "fuzz");
    prefixes_.AddMethodsTo(data_path_);
    pool_.AddMethodsTo(data_path_);
    blocks_.AddMethodsTo(data_path_);
    admin_.AddMethodsTo(data_path_);
    methods_ = std::make_unique<LaneMethods>(&policy_, data_path_, metrics_);
    Map();
  }
  ~HostileWorker() {
    {
      FairMutexLock turn(&policy_.turn().mutex());
      connection_->Close();
    }
    munmap(base_, kLaneBytes);
    cache_.CloseSession(kSession);
    CheckInvariants();
    const PageCounts pages = cache_.Run(GaugeReading()).result().pages;
    Expect(pages.reserved == 0 && pages.protected_ == 0,
           "something was left behind");
  }

  void RunOne() {
    switch (bytes_.ConsumeIntegralInRange(0, 6)) {
      case 0:
        return ScribbleHeader();
      case 1:
        return ScribbleSlot();
      case 2:
        return ScribbleArena();
      case 3:
        return Call();
      case 4:
        return CallRightly();
      case 5:
        return Resume();
      default:
        return Serve();
    }
  }

  void CheckInvariants() {
    for (const std::string& violation : cache_.CheckInvariants()) {
      Expect(false, violation.c_str());
    }
  }

 private:
  static constexpr SessionId kSession{5};

  void Map() {
    const UniqueFd memory = connection_->lane().ShareMemory().value();
    base_ = static_cast<std::byte*>(mmap(nullptr, kLaneBytes,
                                         PROT_READ | PROT_WRITE, MAP_SHARED,
                                         memory.get(), 0));
    Expect(base_ != MAP_FAILED, "mmap");
  }

  uint32_t AnyWord() {
    return bytes_.ConsumeBool()
               ? bytes_.ConsumeIntegral<uint32_t>()
               : bytes_.ConsumeIntegralInRange<uint32_t>(0, 70);
  }
  void ScribbleHeader() {
    const size_t word = bytes_.ConsumeIntegralInRange<size_t>(
        0, sizeof(lane::Header) / sizeof(uint32_t) - 1);
    reinterpret_cast<lane::SharedWord*>(base_)[word] = AnyWord();
  }
  lane::Slot& AnySlot() {
    return lane::SlotAt(
        base_, bytes_.ConsumeIntegralInRange<uint32_t>(0, lane::kSlots - 1));
  }
  void ScribbleSlot() {
    const size_t word = bytes_.ConsumeIntegralInRange<size_t>(0, 15);
    reinterpret_cast<lane::SharedWord*>(&AnySlot())[word] = AnyWord();
  }
  void ScribbleArena() {
    const std::string text = bytes_.ConsumeRandomLengthString(64);
    const size_t offset =
        bytes_.ConsumeIntegralInRange<size_t>(0, kArenaBytes - text.size());
    std::memcpy(lane::ArenaAt(base_) + offset, text.data(), text.size());
  }

  // Publishes a call of any method, or of a number that names none, with any
  // bytes as its request, in any slot.
  void Call() {
    Publish(bytes_.ConsumeIntegralInRange<uint32_t>(0, 17),
            bytes_.ConsumeRandomLengthString(200));
  }
  // Publishes a call of MatchPrefix with a request that the handler mostly
  // accepts.
  void CallRightly() {
    v1::MatchPrefixRequest request;
    request.set_session_id(kSession.value());
    for (int i = bytes_.ConsumeIntegralInRange(0, 8); i > 0; --i) {
      request.add_tokens(bytes_.ConsumeIntegralInRange<uint32_t>(0, 1));
    }
    request.set_lock(true);
    request.set_reserve_tokens(bytes_.ConsumeIntegralInRange<uint32_t>(0, 12));
    if (bytes_.ConsumeBool()) request.set_pending_wait_ms(600'000);
    Publish(static_cast<uint32_t>(lane::Method::kMatchPrefix),
            request.SerializeAsString());
  }
  void Publish(uint32_t method, const std::string& request) {
    const uint32_t index =
        bytes_.ConsumeIntegralInRange<uint32_t>(0, lane::kSlots - 1);
    const uint32_t offset =
        bytes_.ConsumeIntegralInRange<uint32_t>(0, kArenaBytes / 2);
    std::memcpy(lane::ArenaAt(base_) + offset, request.data(), request.size());
    lane::Slot& slot = lane::SlotAt(base_, index);
    slot.method = method;
    slot.request_offset = offset;
    slot.request_bytes = static_cast<uint32_t>(request.size());
    slot.answer_offset = bytes_.ConsumeIntegralInRange<uint32_t>(
        kArenaBytes / 2, kArenaBytes - 1);
    slot.answer_capacity = bytes_.ConsumeIntegralInRange<uint32_t>(
        0, kArenaBytes - slot.answer_offset);
    slot.state = static_cast<uint32_t>(lane::SlotState::kSubmitted);
    lane::Header& header = lane::HeaderAt(base_);
    header.ring[header.submitted % lane::kSlots] = static_cast<uint8_t>(index);
    header.submitted = header.submitted + 1;
  }

  void Serve() {
    if (is_broken_) return;
    // One look at the lane never takes more calls than the ring holds.
    for (uint32_t i = 0; i <= lane::kSlots; ++i) {
      const ServedLane::Next next = connection_->lane().Take(taken_);
      is_broken_ = next == ServedLane::Next::kBroken;
      if (next != ServedLane::Next::kCall) return;
      methods_->Serve(*connection_, taken_);
    }
    Expect(false, "calls without end");
  }

  // Resumes the matches that wait.
  void Resume() {
    FairMutexLock turn(&policy_.turn().mutex());
    pending_.ResumeAll();
  }

  FuzzedDataProvider& bytes_;
  CallPolicy policy_;
  RpcServer rpc_{&policy_};  // is not started
  PrefixCache cache_{
      {.page_tokens = kPageTokens,
       .capacity_pages = kCapacity,
       .session_limits = {.max_locks = 8, .max_reserved_pages = 12},
       .blocks = {.memory_bytes = kMemoryBytes,
                  .extent_bytes = 4 * kPlaceBytes},
       .on_wait_over = [this](WaitId wait, PendingOutcome outcome) {
         pending_.WaitOver(wait, outcome);
       }}};
  PendingMatches pending_{&cache_, &rpc_};
  SelfCheck self_check_{&cache_};
  SteppedCalls stepped_{&cache_, &rpc_};
  PrefixCacheService prefixes_{&cache_, &pending_,  &stepped_,
                               nullptr, kMaxTokens, kEpoch};
  PoolService pool_{&cache_, &stepped_, nullptr, nullptr, v1::PoolDescription(),
                    kEpoch};
  BlockCache block_cache_{&cache_};
  BlockService blocks_{&cache_, &block_cache_, &stepped_,
                       nullptr, kMemoryBytes,  kEpoch};
  AdminService admin_{
      &cache_,
      &self_check_,
      &stepped_,
      {.epoch = kEpoch, .max_tokens = kMaxTokens, .drain = [](bool) {}}};
  DataPath data_path_;
  RpcMetrics metrics_;
  std::unique_ptr<LaneMethods> methods_;
  std::unique_ptr<LaneConnection> connection_ =
      std::make_unique<LaneConnection>(
          ServedLane::Create({.arena_bytes = kArenaBytes}).value(),
          LanePeer{.session = kSession, .process = {}, .authorization = ""});
  std::byte* base_ = nullptr;
  ServedLane::Taken taken_;
  bool is_broken_ = false;
};

}  // namespace
}  // namespace pando

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  // Otherwise protobuf would log each text that is not UTF-8.
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider bytes(data, size);
  pando::HostileWorker worker(bytes);
  for (int i = 0; i < pando::kMaxSteps && bytes.remaining_bytes() > 0; ++i) {
    worker.RunOne();
  }
  worker.CheckInvariants();
  return 0;
}
