#include "service/lane/lane_server.h"

#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/requests/errors.h"
#include "lane/pause.h"
#include "os/logging/log.h"

namespace pando {
namespace {

// The epoll data of the event that wakes the thread itself; lanes have others.
constexpr uint64_t kChanges = 0;
// How often the thread looks at the active lanes between two looks at the
// clock.
constexpr int kSpins = 16;
// A call with a larger request is a long one. A request of this size takes some
// ten microseconds.
constexpr uint32_t kShortRequestBytes = 16 << 10;
// How often the thread listens for other lanes while calls never pause.
constexpr std::chrono::microseconds kBetweenRings{50};
// How long a worker may read answers after its lane was closed.
constexpr std::chrono::seconds kReadAfterClose{2};
// Timeouts of epoll_wait in milliseconds.
constexpr int kNow = 0;
constexpr int kWhenRung = -1;
constexpr int kWhenRungOrSoon = 500;

uint32_t ThisCpu() { return static_cast<uint32_t>(sched_getcpu()); }

}  // namespace

absl::StatusOr<std::unique_ptr<LaneServer>> LaneServer::Start(
    const Config& config, CallPolicy* policy, const DataPath& data_path,
    RpcMetrics& metrics) {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return absl::ErrnoToStatus(errno, "epoll_create1");
  UniqueFd changes(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!changes.valid()) return absl::ErrnoToStatus(errno, "eventfd");
  auto server =
      absl::WrapUnique(new LaneServer(config, policy, data_path, metrics,
                                      std::move(epoll), std::move(changes)));
  RETURN_IF_ERROR(server->Listen(server->changes_.get(), kChanges));
  server->thread_ = std::thread([raw = server.get()] { raw->Run(); });
  return server;
}

LaneServer::LaneServer(const Config& config, CallPolicy* policy,
                       const DataPath& data_path, RpcMetrics& metrics,
                       UniqueFd epoll, UniqueFd changes)
    : config_(config),
      policy_(policy),
      epoll_(std::move(epoll)),
      changes_(std::move(changes)),
      methods_(policy, data_path, metrics) {}

absl::StatusOr<LaneDescriptors> LaneServer::Open(LanePeer peer) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<ServedLane> lane,
      ServedLane::Create({.arena_bytes = config_.arena_bytes,
                          .slots = config_.slots,
                          .max_request_bytes = config_.max_request_bytes,
                          .short_request_bytes = kShortRequestBytes,
                          .spin = config_.spin}));
  ASSIGN_OR_RETURN(UniqueFd memory, lane->ShareMemory());
  ASSIGN_OR_RETURN(UniqueFd doorbell, lane->ShareDoorbell());
  LaneDescriptors descriptors = {
      .memory = std::move(memory),
      .memory_bytes = lane::kArenaOffset + config_.arena_bytes,
      .doorbell = std::move(doorbell)};

  const SessionId session = peer.session;
  absl::MutexLock hold(&mutex_);
  if (is_stopped_) return absl::UnavailableError("the server is stopping");
  const auto before = by_session_.find(session);
  const bool has_lane = before != by_session_.end();
  if (!has_lane && by_session_.size() >= config_.max_lanes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there are ", by_session_.size(),
                     " lanes, as many as max-lanes allows"));
  }
  if (with_memory_by_session_.contains(session) &&
      with_memory_by_session_.at(session) >= kMaxOfSession) {
    return MakeError(
        Reason::kSessionLimit,
        absl::StrCat("the session has opened ",
                     with_memory_by_session_.at(session),
                     " lanes within seconds; the limit is ", kMaxOfSession));
  }
  if (lanes_with_memory_ - by_session_.size() >= config_.max_lanes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("as many lanes as max-lanes allows, ", config_.max_lanes,
                     ", were closed within seconds"));
  }
  if (has_lane) to_close_.push_back(before->second);
  ++lanes_with_memory_;
  ++with_memory_by_session_[session];
  const LaneId id = ++last_id_;
  by_session_[session] = id;
  to_open_.push_back(
      {id, std::make_unique<LaneConnection>(std::move(lane), std::move(peer))});
  WakeThread();
  return descriptors;
}

void LaneServer::Close(SessionId session) {
  absl::MutexLock hold(&mutex_);
  const auto found = by_session_.find(session);
  if (found == by_session_.end()) return;
  to_close_.push_back(found->second);
  by_session_.erase(found);
  WakeThread();
}

LaneFigures LaneServer::figures() const {
  LaneFigures figures = {
      .spins_with_call = spins_with_call_.load(std::memory_order_relaxed),
      .spins_without_call =
          spins_without_call_.load(std::memory_order_relaxed)};
  absl::MutexLock hold(&mutex_);
  figures.open = static_cast<uint32_t>(by_session_.size());
  return figures;
}

void LaneServer::Stop() {
  {
    absl::MutexLock hold(&mutex_);
    is_stopped_ = true;
    WakeThread();
  }
  if (thread_.joinable()) thread_.join();
}

void LaneServer::WakeThread() {
  has_changes_.store(true);
  eventfd_write(changes_.get(), 1);
}

absl::Status LaneServer::Listen(int fd, LaneId id) {
  epoll_event event = {};
  // Edge-triggered, so that the doorbell need not be read: a worker shares it,
  // and could make a read of it block.
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = id;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, "epoll_ctl");
}

void LaneServer::Run() {
  pthread_setname_np(pthread_self(), "lanes");
  while (true) {
    if (has_changes_.load(std::memory_order_relaxed) && !OpenAndCloseLanes())
      break;
    if (!closed_.empty()) GiveMemoryBack();
    if (ServeActive()) {
      EndSpin(spins_with_call_);
      // Calls may never pause, so lanes that have rung become active here, too.
      if (last_call_ - last_rings_ > kBetweenRings) TakeRings(kNow);
    } else if (MaySpin()) {
      is_spinning_ = true;
      SpinOnActive();
    } else {
      EndSpin(spins_without_call_);
      if (PrepareToSleep()) {
        TakeRings(closed_.empty() ? kWhenRung : kWhenRungOrSoon);
      }
    }
  }
  while (!lanes_.empty()) Drop(lanes_.begin()->first);
}

bool LaneServer::OpenAndCloseLanes() {
  std::vector<OpenedLane> to_open;
  std::vector<LaneId> to_close;
  bool goes_on = true;
  {
    absl::MutexLock hold(&mutex_);
    has_changes_.store(false);
    to_open.swap(to_open_);
    to_close.swap(to_close_);
    goes_on = !is_stopped_;
  }
  for (OpenedLane& opened : to_open) {
    const int doorbell = opened.connection->lane().doorbell();
    lanes_[opened.id] = std::move(opened.connection);
    if (absl::Status status = Listen(doorbell, opened.id); !status.ok()) {
      Log(LogLevel::kError, "a lane cannot be served",
          {{"error", status.message()}});
      Drop(opened.id);
    }
  }
  for (const LaneId id : to_close) Drop(id);
  return goes_on;
}

bool LaneServer::ServeActive() {
  const uint32_t cpu = ThisCpu();
  bool served = false;
  bool caller_is_here = false;
  // Uses indices, because serving a call may drop its lane from the list.
  for (size_t i = 0; i < active_.size(); ++i) {
    LaneConnection& connection = *lanes_.at(active_[i]);
    // The calls of a lane begin in their order.
    if (long_calls_.Has(connection) || !connection.lane().HasCalls()) continue;
    connection.lane().SetCpu(cpu);
    if (!Serve(active_[i], connection)) continue;
    served = true;
    caller_is_here |= taken_.cpu == cpu;
  }
  if (!long_calls_.empty()) {
    long_calls_.Step();
    served = true;
  }
  if (!served) return false;
  last_call_ = Clock::now();
  callers_are_elsewhere_ = !caller_is_here;
  return true;
}

bool LaneServer::Serve(LaneId id, LaneConnection& connection) {
  switch (connection.lane().Take(taken_)) {
    case ServedLane::Next::kNothing:
      return false;
    case ServedLane::Next::kCall:
      if (StartLongCall(connection)) return true;
      methods_.Serve(connection, taken_);
      return true;
    case ServedLane::Next::kBroken:
      Log(LogLevel::kWarning,
          "a lane is closed, for its worker does not obey the protocol",
          {{"peer", NameOf(connection.peer().process)}});
      Drop(id);
      return true;
  }
  return false;
}

bool LaneServer::StartLongCall(LaneConnection& connection) {
  if (taken_.request_bytes <= kShortRequestBytes ||
      taken_.request_bytes > config_.max_request_bytes) {
    return false;
  }
  std::unique_ptr<LaneCall> place = methods_.NewCall(taken_.method);
  if (place == nullptr) return false;
  long_calls_.Add(LongCall(policy_, &connection, std::move(place), taken_));
  return true;
}

bool LaneServer::MaySpin() const {
  return callers_are_elsewhere_ && !active_.empty() &&
         Clock::now() - last_call_ < absl::ToChronoNanoseconds(config_.spin);
}

void LaneServer::SpinOnActive() const {
  for (int spin = 0; spin < kSpins; ++spin) {
    for (const LaneId id : active_) {
      if (lanes_.at(id)->lane().HasCalls()) return;
    }
    lane::Pause();
  }
}

void LaneServer::EndSpin(std::atomic<uint64_t>& spins) {
  if (!std::exchange(is_spinning_, false)) return;
  spins.fetch_add(1, std::memory_order_relaxed);
}

bool LaneServer::PrepareToSleep() {
  for (const LaneId id : active_) lanes_.at(id)->lane().SetAwake(false);
  const auto has_calls = [this](LaneId id) {
    return lanes_.at(id)->lane().HasCalls();
  };
  std::erase_if(active_, std::not_fn(has_calls));
  for (const LaneId id : active_) lanes_.at(id)->lane().SetAwake(true);
  return active_.empty();
}

void LaneServer::TakeRings(int timeout_ms) {
  std::array<epoll_event, lane::kSlots> events;
  const int count = epoll_wait(epoll_.get(), events.data(),
                               static_cast<int>(events.size()), timeout_ms);
  last_rings_ = Clock::now();
  for (int i = 0; i < count; ++i) {
    const LaneId id = events[i].data.u64;
    const auto lane = lanes_.find(id);
    if (lane == lanes_.end()) continue;  // kChanges, or dropped meanwhile
    lane->second->lane().SetAwake(true);
    if (std::find(active_.begin(), active_.end(), id) == active_.end()) {
      active_.push_back(id);
    }
  }
}

void LaneServer::Drop(LaneId id) {
  const auto found = lanes_.find(id);
  if (found == lanes_.end()) return;
  closed_.push_back({Clock::now(), std::move(found->second)});
  LaneConnection* const connection = closed_.back().connection.get();
  long_calls_.Remove(connection);
  lanes_.erase(found);
  std::erase(active_, id);
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection->lane().doorbell(),
            nullptr);
  {
    absl::MutexLock hold(&mutex_);
    const auto open = by_session_.find(connection->peer().session);
    if (open != by_session_.end() && open->second == id) {
      by_session_.erase(open);
    }
  }
  FairMutexLock turn(&policy_->turn().mutex());
  connection->Close();
}

void LaneServer::GiveMemoryBack() {
  while (!closed_.empty() &&
         Clock::now() - closed_.front().since > kReadAfterClose) {
    LaneConnection& connection = *closed_.front().connection;
    const SessionId session = connection.peer().session;
    connection.lane().DiscardArena();
    closed_.pop_front();
    absl::MutexLock hold(&mutex_);
    --lanes_with_memory_;
    const auto of_session = with_memory_by_session_.find(session);
    if (--of_session->second == 0) with_memory_by_session_.erase(of_session);
  }
}

}  // namespace pando
