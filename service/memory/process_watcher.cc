#include "service/memory/process_watcher.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace pando {
namespace {

// The epoll data of stop_. Writers count from 1.
constexpr uint64_t kStopEvent = 0;

absl::Status AddToEpoll(const UniqueFd& epoll, const UniqueFd& fd,
                        uint64_t id) {
  epoll_event event = {};
  // One-shot, because the event would otherwise come again until the descriptor
  // is closed everywhere.
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
  RETURN_IF_ERROR(AddToEpoll(epoll, stop, kStopEvent));
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

absl::Status ProcessWatcher::Watch(WriterId writer, pid_t pid) {
  if (pid <= 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "pid is %d; the process is not visible in this PID namespace", pid));
  }
  // This libc has no wrapper for the call.
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) {
    return absl::ErrnoToStatus(errno, absl::StrFormat("pidfd_open of %d", pid));
  }
  absl::MutexLock lock(&mutex_);
  absl::Status added = AddToEpoll(epoll_, pidfd, writer.value());
  if (added.ok()) watched_[writer] = std::move(pidfd);
  return added;
}

bool ProcessWatcher::IsLiving(WriterId writer) const {
  absl::MutexLock lock(&mutex_);
  const auto found = watched_.find(writer);
  if (found == watched_.end()) return false;
  pollfd ended = {found->second.get(), POLLIN, 0};
  return poll(&ended, 1, 0) == 0;
}

void ProcessWatcher::Forget(WriterId writer) {
  absl::MutexLock lock(&mutex_);
  watched_.erase(writer);
}

void ProcessWatcher::Run() {
  while (true) {
    epoll_event event;
    // The only possible error is EINTR.
    if (epoll_wait(epoll_.get(), &event, 1, -1) != 1) continue;
    if (event.data.u64 == kStopEvent) return;
    const WriterId writer(event.data.u64);
    {
      absl::MutexLock lock(&mutex_);
      if (watched_.erase(writer) == 0) continue;
    }
    on_exit_(writer);
  }
}

}  // namespace pando
