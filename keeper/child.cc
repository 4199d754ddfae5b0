#include "keeper/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace pando::keeper {
namespace {

constexpr int kFirst = 3;  // the first descriptor that is handed down
constexpr int kCannotExecute = 127;

// Puts the descriptors where sd_listen_fds(3) looks for them. Returns false on
// an error, with errno.
bool HandDown(const DescriptorStore& store) {
  const auto& kept = store.kept();
  std::string names;
  std::vector<int> copies;
  for (const DescriptorStore::Kept& each : kept) {
    names += (names.empty() ? "" : ":") + each.name;
    // The copies get numbers above those that are about to be overwritten.
    copies.push_back(fcntl(each.fd.get(), F_DUPFD_CLOEXEC,
                           kFirst + static_cast<int>(kept.size())));
  }
  for (size_t i = 0; i < copies.size(); ++i) {
    if (dup2(copies[i], kFirst + static_cast<int>(i)) < 0) return false;
  }
  return setenv("LISTEN_FDS", std::to_string(kept.size()).c_str(), 1) == 0 &&
         setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1) == 0 &&
         setenv("LISTEN_FDNAMES", names.c_str(), 1) == 0;
}

// Returns how often the service manager of `parent` wants signs of life; 0 if
// it wants none.
std::chrono::microseconds WatchdogOf(pid_t parent) {
  const char* const watched = std::getenv("WATCHDOG_PID");
  const char* const time = std::getenv("WATCHDOG_USEC");
  const bool is_for_another =
      watched != nullptr && watched != std::to_string(parent);
  if (is_for_another || time == nullptr) return {};
  return std::chrono::microseconds(std::strtoll(time, nullptr, 10));
}

// Asks the program for signs of life, for the keeper and for the keeper's
// service manager.
bool HandWatchdogDown(pid_t parent, std::chrono::microseconds watchdog) {
  const std::chrono::microseconds above = WatchdogOf(parent);
  if (watchdog.count() == 0 || (above.count() > 0 && above < watchdog)) {
    watchdog = above;
  }
  if (watchdog.count() == 0) return unsetenv("WATCHDOG_USEC") == 0;
  return setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1) == 0 &&
         setenv("WATCHDOG_USEC", std::to_string(watchdog.count()).c_str(), 1) ==
             0;
}

[[noreturn]] void Become(char* const* command, const DescriptorStore& store,
                         const std::string& notify_socket,
                         std::chrono::microseconds watchdog,
                         const sigset_t& signals, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have ended before prctl took effect.
  if (getppid() != parent) _exit(EXIT_FAILURE);
  setpgid(0, 0);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  if (HandDown(store) && HandWatchdogDown(parent, watchdog) &&
      setenv("NOTIFY_SOCKET", notify_socket.c_str(), 1) == 0) {
    execvp(command[0], command);
  }
  std::fprintf(stderr, "pando-keeper: cannot execute ");
  std::perror(command[0]);
  _exit(kCannotExecute);
}

}  // namespace

pid_t StartChild(char* const* command, const DescriptorStore& store,
                 const std::string& notify_socket,
                 std::chrono::microseconds watchdog, const sigset_t& signals) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    Become(command, store, notify_socket, watchdog, signals, parent);
  }
  return child;
}

}  // namespace pando::keeper
