#include "service/memory/process_watcher.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_format.h"

namespace pando {
namespace {

// The event of stop_; watches count from 1.
constexpr uint64_t kStopEvent = 0;

absl::Status AddToEpoll(const UniqueFd& epoll, const UniqueFd& fd,
                        uint64_t id) {
  epoll_event event = {};
  // Once: the event stays until the descriptor is closed everywhere.
  event.events = EPOLLIN | EPOLLONESHOT;
  event.data.u64 = id;
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) {
    return absl::ErrnoToStatus(errno, "epoll_ctl");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessWatcher>> ProcessWatcher::Start(
    OnExit on_exit) {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return absl::ErrnoToStatus(errno, "epoll_create1");
  UniqueFd stop(eventfd(0, EFD_CLOEXEC));
  if (!stop.valid()) return absl::ErrnoToStatus(errno, "eventfd");
  absl::Status added = AddToEpoll(epoll, stop, kStopEvent);
  if (!added.ok()) return added;
  return absl::WrapUnique(new ProcessWatcher(
      std::move(on_exit), std::move(epoll), std::move(stop)));
}

ProcessWatcher::ProcessWatcher(OnExit on_exit, UniqueFd epoll, UniqueFd stop)
    : on_exit_(std::move(on_exit)),
      epoll_(std::move(epoll)),
      stop_(std::move(stop)),
      thread_([this] { Run(); }) {}

ProcessWatcher::~ProcessWatcher() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

absl::Status ProcessWatcher::Watch(SessionId session, pid_t pid) {
  absl::Status added = Add(session, pid);
  if (!added.ok()) {
    Forget(session);
    absl::MutexLock lock(&mutex_);
    unwatchable_.insert(session);
  }
  return added;
}

absl::Status ProcessWatcher::Add(SessionId session, pid_t pid) {
  if (pid <= 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "pid is %d; the process is not visible in this PID namespace", pid));
  }
  // No wrapper in this libc.
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) {
    return absl::ErrnoToStatus(errno, absl::StrFormat("pidfd_open of %d", pid));
  }
  absl::MutexLock lock(&mutex_);
  if (unwatchable_.contains(session)) {
    return absl::FailedPreconditionError(
        "another process of the session could not be watched");
  }
  if (IsWatched(session, pid)) return absl::OkStatus();
  const uint64_t watch = ++last_watch_;
  absl::Status added = AddToEpoll(epoll_, pidfd, watch);
  if (added.ok()) watched_[watch] = {session, pid, std::move(pidfd)};
  return added;
}

void ProcessWatcher::Forget(SessionId session) {
  absl::MutexLock lock(&mutex_);
  absl::erase_if(watched_, [session](const auto& entry) {
    return entry.second.session == session;
  });
  unwatchable_.erase(session);
}

void ProcessWatcher::Run() {
  while (true) {
    epoll_event event;
    // Only EINTR is possible.
    if (epoll_wait(epoll_.get(), &event, 1, -1) != 1) continue;
    if (event.data.u64 == kStopEvent) return;
    const std::optional<SessionId> session = Remove(event.data.u64);
    if (session) on_exit_(*session);
  }
}

std::optional<SessionId> ProcessWatcher::Remove(uint64_t watch) {
  absl::MutexLock lock(&mutex_);
  const auto found = watched_.find(watch);
  if (found == watched_.end()) return std::nullopt;
  const SessionId session = found->second.session;
  watched_.erase(found);
  if (IsWatched(session)) return std::nullopt;
  return session;
}

bool ProcessWatcher::IsWatched(SessionId session) const {
  return std::any_of(
      watched_.begin(), watched_.end(),
      [session](const auto& entry) { return entry.second.session == session; });
}

bool ProcessWatcher::IsWatched(SessionId session, pid_t pid) const {
  return std::any_of(watched_.begin(), watched_.end(),
                     [session, pid](const auto& entry) {
                       const WatchedProcess& process = entry.second;
                       pollfd ended = {process.pidfd.get(), POLLIN, 0};
                       return process.session == session &&
                              process.pid == pid && poll(&ended, 1, 0) == 0;
                     });
}

}  // namespace pando
