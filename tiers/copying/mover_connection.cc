#include "tiers/copying/mover_connection.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "mover/message_socket.h"
#include "os/logging/log.h"
#include "os/monotonic_clock.h"

namespace pando {
MoverConnection::MoverConnection(UniqueFd socket, UniqueFd process,
                                 UniqueFd stop, UnixPeer peer,
                                 const Times& times, std::string device)
    : socket_(std::move(socket)),
      process_(std::move(process)),
      stop_(std::move(stop)),
      peer_(peer),
      times_(times),
      device_(std::move(device)),
      thread_([this] { Run(); }) {}

MoverConnection::~MoverConnection() {
  GiveUp();
  thread_.join();
}

void MoverConnection::GiveUp() {
  eventfd_write(stop_.get(), 1);
  shutdown(socket_.get(), SHUT_RDWR);
}

absl::Status MoverConnection::NotThere() const {
  return absl::UnavailableError(
      absl::StrCat("the pando-mover of ", device_, " is not there"));
}

std::shared_ptr<const MoverConnection::Copying> MoverConnection::Begin(
    mover::Direction direction, PageId page, uint64_t block) {
  auto copying = std::make_shared<Copying>();
  absl::MutexLock hold(&mutex_);
  if (state_ != State::kReady) {
    copying->is_over = true;
    copying->status = NotThere();
    return copying;
  }
  copying->begin = MonotonicNow();
  const mover::Order order = {.id = ++last_id_,
                              .block = block,
                              .page = page.value(),
                              .direction = direction};
  copying_[order.id] = copying;
  // A part of the order may have arrived, so no other order can follow. The
  // connection closes, and the copy is over when the process has ended.
  if (!mover::Send(socket_.get(), order).ok()) {
    shutdown(socket_.get(), SHUT_RDWR);
  }
  return copying;
}

absl::Status MoverConnection::End(
    const std::shared_ptr<const Copying>& copying) {
  absl::MutexLock hold(&mutex_);
  mutex_.Await(absl::Condition(&copying->is_over));
  return copying->status;
}

bool MoverConnection::is_ready() const {
  absl::MutexLock hold(&mutex_);
  if (state_ != State::kReady) return false;
  return copying_.empty() ||
         MonotonicNow() - copying_.begin()->second->begin < times_.hung_after;
}

bool MoverConnection::MayBeReplacedBy(const UnixPeer& peer) const {
  absl::MutexLock hold(&mutex_);
  return state_ == State::kOver ||
         (state_ == State::kClosed && peer.pid != 0 && peer == peer_);
}

void MoverConnection::Run() {
  pthread_setname_np(pthread_self(), "mover");
  SetPatience(times_.ready_within);
  mover::Reply reply;
  while (mover::Receive(socket_.get(), reply).ok() && Take(reply)) continue;
  bool was_told = false;
  {
    absl::MutexLock hold(&mutex_);
    was_told = state_ == State::kReady;
    state_ = State::kClosed;
  }
  // This tells the mover that the connection is over, in case only this end has
  // failed.
  shutdown(socket_.get(), SHUT_RDWR);
  if (AwaitEndOfProcess(was_told)) {
    Log(LogLevel::kWarning,
        was_told ? "a pando-mover has ended"
                 : "a pando-mover did not begin to copy",
        {{"device", device_}});
  }
  FailAll();
}

void MoverConnection::SetPatience(absl::Duration patience) const {
  const timeval time = absl::ToTimeval(patience);
  setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
}

bool MoverConnection::Take(const mover::Reply& reply) {
  absl::MutexLock hold(&mutex_);
  if (reply.id == 0) {
    state_ = State::kReady;
    SetPatience(absl::ZeroDuration());
    Log(LogLevel::kInfo, "a pando-mover copies", {{"device", device_}});
    return true;
  }
  if (state_ != State::kReady) return false;
  const auto found = copying_.find(reply.id);
  if (found == copying_.end()) return true;
  Copying& copying = *found->second;
  copying.is_over = true;
  if (reply.is_done == 0) {
    copying.status = absl::InternalError(
        absl::StrCat("the pando-mover of ", device_,
                     " cannot copy a page; its log says why"));
  }
  copying_.erase(found);
  return true;
}

bool MoverConnection::AwaitEndOfProcess(bool was_told) {
  pollfd watched[] = {{.fd = stop_.get(), .events = POLLIN, .revents = 0},
                      {.fd = process_.get(), .events = POLLIN, .revents = 0}};
  int timeout_ms = -1;
  if (!was_told) {
    timeout_ms = 0;
  } else if (!process_.valid()) {
    timeout_ms = static_cast<int>(absl::ToInt64Milliseconds(times_.quarantine));
  }
  while (poll(watched, 2, timeout_ms) < 0) {
  }
  return watched[0].revents == 0;
}

void MoverConnection::FailAll() {
  absl::MutexLock hold(&mutex_);
  state_ = State::kOver;
  for (const auto& [id, copying] : copying_) {
    copying->is_over = true;
    copying->status = NotThere();
  }
  copying_.clear();
}

}  // namespace pando
