// pando-keeper starts pandod and keeps the descriptors that it gives away. When
// pandod dies, the keeper starts it again and hands them back. It ends a
// pandod that hangs.

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "keeper/back_off.h"
#include "keeper/child.h"
#include "keeper/descriptor_store.h"
#include "keeper/life_signs.h"
#include "keeper/notify_socket.h"

namespace pando::keeper {
namespace {

constexpr int kUsageError = 2;
constexpr int kSignalBase = 128;  // added to a signal in an exit code

constexpr char kHelp[] =
    "Starts pandod and, when it is killed, crashes or hangs, starts it again "
    "with\n"
    "the sockets and the memory that it had.\n\n"
    "Usage: pando-keeper [OPTIONS] PROGRAM [OPTIONS OF IT]\n\n"
    "Positionals:\n"
    "  PROGRAM                     pandod, with its options\n\n"
    "Options:\n"
    "  --watchdog SECONDS          End the program when it gives no sign of "
    "life for\n"
    "                              so long; 0: never [5]\n"
    "  -h,--help                   Print this help message and exit\n"
    "  --version                   Display program version information and "
    "exit\n";

constexpr pid_t kNoProcess = -1;
constexpr std::chrono::milliseconds kLook{250};
// A keeper that wakes up later than this was not given a CPU, or was stopped.
constexpr std::chrono::milliseconds kLate{100};
// How long a program may take to end by SIGABRT.
constexpr std::chrono::seconds kAbort{1};

bool IsStop(int signal) { return signal == SIGTERM || signal == SIGINT; }

// Keeps one program running. Single-threaded.
class Keeper {
 public:
  // `signals` is a signalfd of the signals that are passed on, and of SIGCHLD.
  // The program blocks the signals in `inherited`, and hangs if it gives no
  // sign of life for `watchdog`.
  Keeper(char* const* command, std::chrono::seconds watchdog,
         const UniqueFd& signals, const sigset_t& inherited)
      : command_(command),
        signals_(signals.get()),
        inherited_(inherited),
        life_(watchdog) {}

  // Runs the program until it ends by itself or is stopped. Returns the exit
  // code for this process.
  int Run() {
    if (!notify_.valid()) {
      std::perror("pando-keeper: cannot make a socket");
      return EXIT_FAILURE;
    }
    while (true) {
      if (child_ == 0 && Clock::now() >= start_at_ && !Start()) {
        return EXIT_FAILURE;
      }
      Wait();
      notify_.Receive(child_ > 0 ? child_ : kNoProcess, store_, life_);
      PassSignalsOn();
      EndIfItHangs();
      if (child_ == 0 && is_stopping_) return EXIT_SUCCESS;
      if (const std::optional<int> code = Reap()) return *code;
    }
  }

 private:
  using Clock = BackOff::Clock;

  bool Start() {
    child_ = StartChild(command_, store_, notify_.address(), life_.limit(),
                        inherited_);
    life_.Begin();
    kill_at_.reset();
    if (child_ < 0) std::perror("pando-keeper: fork");
    started_at_ = Clock::now();
    return child_ > 0;
  }

  // Waits for a signal, a message or the time to start the program. While the
  // program may be found to hang, it also wakes up often enough to notice that
  // nothing on this machine ran for a while.
  void Wait() {
    pollfd polled[] = {{signals_, POLLIN, 0}, {notify_.fd(), POLLIN, 0}};
    const Clock::time_point begin = Clock::now();
    std::chrono::milliseconds timeout{-1};
    if (child_ == 0) {
      timeout = std::max(
          std::chrono::milliseconds(0),
          std::chrono::ceil<std::chrono::milliseconds>(start_at_ - begin));
    } else if (life_.deadline().has_value() || kill_at_.has_value()) {
      timeout = kLook;
    }
    poll(polled, std::size(polled), static_cast<int>(timeout.count()));
    const Clock::time_point now = Clock::now();
    if (now - begin > kLook + kLate) life_.Excuse(now);
  }

  // Ends a program that hangs: first in a way that pandod counts as a crash,
  // then in the way that no process withstands.
  void EndIfItHangs() {
    if (child_ == 0) return;
    const Clock::time_point now = Clock::now();
    if (kill_at_.has_value() && now >= *kill_at_) {
      kill(child_, SIGKILL);
      kill_at_.reset();
    }
    const std::optional<Clock::time_point> deadline = life_.deadline();
    if (!deadline.has_value() || now < *deadline) return;
    std::fprintf(stderr,
                 "pando-keeper: process %d gave no sign of life for %lld "
                 "seconds; it is ended\n",
                 child_, static_cast<long long>(life_.limit().count()));
    kill(child_, SIGABRT);
    kill_at_ = now + kAbort;
    life_.Begin();
  }

  void PassSignalsOn() {
    signalfd_siginfo info;
    while (read(signals_, &info, sizeof(info)) == sizeof(info)) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGCHLD) continue;
      is_stopping_ |= IsStop(signal);
      if (child_ > 0) kill(child_, signal);
    }
  }

  // Collects processes that have ended. If the program ended by itself or was
  // stopped, returns the code to end with. If a signal ended it, sets the time
  // of its next start. As the first process of a container, the keeper also
  // gets all its orphans as children.
  std::optional<int> Reap() {
    int status = 0;
    pid_t ended;
    do {
      ended = waitpid(-1, &status, WNOHANG);
    } while (ended > 0 && ended != child_);
    if (ended <= 0) return {};
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    const int signal = WTERMSIG(status);
    if (is_stopping_) return kSignalBase + signal;
    notify_.Receive(child_, store_, life_);  // what it sent before it died
    const Clock::time_point now = Clock::now();
    start_at_ = now + back_off_.After(now - started_at_);
    const std::string what = "process " + std::to_string(child_) +
                             " was ended by signal " + std::to_string(signal) +
                             " (" + strsignal(signal) + ")";
    std::fprintf(
        stderr,
        "pando-keeper: %s; it is started again in %lld ms with %zu "
        "descriptors\n",
        what.c_str(),
        static_cast<long long>(
            std::chrono::floor<std::chrono::milliseconds>(start_at_ - now)
                .count()),
        store_.kept().size());
    notify_.TellServiceManager("STATUS=" + what);
    child_ = 0;
    return {};
  }

  char* const* const command_;
  const int signals_;
  const sigset_t inherited_;
  NotifySocket notify_;
  DescriptorStore store_;
  LifeSigns life_;
  // When the program is killed because it hung and did not end by itself.
  std::optional<Clock::time_point> kill_at_;
  BackOff back_off_;
  pid_t child_ = 0;  // 0: the program is started at start_at_
  Clock::time_point start_at_ = {};
  Clock::time_point started_at_ = {};
  bool is_stopping_ = false;
};

// Takes `--watchdog SECONDS` or `--watchdog=SECONDS` off the command line.
// Returns how long, or none if that is no number from 0 to an hour.
std::optional<std::chrono::seconds> TakeWatchdog(int& argc, char**& argv) {
  constexpr std::string_view kName = "--watchdog";
  constexpr std::chrono::seconds kDefault{5};
  constexpr int kMost = 3'600;
  const std::string_view first = argc > 1 ? argv[1] : "";
  const bool is_alone = first == kName;
  if (!is_alone && !first.starts_with(std::string(kName) + "=")) {
    return kDefault;
  }
  const std::string_view text = !is_alone  ? first.substr(kName.size() + 1)
                                : argc > 2 ? std::string_view(argv[2])
                                           : "";
  int seconds = -1;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0 ||
      seconds > kMost) {
    std::fprintf(stderr,
                 "pando-keeper: watchdog is '%.*s'; must be a whole number of "
                 "seconds from 0 to %d\n",
                 static_cast<int>(text.size()), text.data(), kMost);
    return std::nullopt;
  }
  argc -= is_alone ? 2 : 1;
  argv += is_alone ? 2 : 1;
  return std::chrono::seconds(seconds);
}

int Main(int argc, char** argv) {
  const std::optional<std::chrono::seconds> watchdog = TakeWatchdog(argc, argv);
  if (!watchdog.has_value()) return kUsageError;
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "--help" || first == "-h") {
    std::fputs(kHelp, stdout);
    return EXIT_SUCCESS;
  }
  if (first == "--version") {
    std::puts("pando-keeper " PANDO_VERSION);
    return EXIT_SUCCESS;
  }
  if (first.empty() || first.starts_with('-')) {
    std::fprintf(stderr,
                 "pando-keeper: the first argument is '%s'; it must be the "
                 "program to start\n\n%s",
                 argc > 1 ? argv[1] : "", kHelp);
    return kUsageError;
  }
  // The process that started this one may ignore SIGCHLD. That would be
  // inherited, and SIGCHLD would not be sent.
  std::signal(SIGCHLD, SIG_DFL);
  sigset_t watched;
  sigset_t inherited;
  sigemptyset(&watched);
  for (const int signal :
       {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) {
    sigaddset(&watched, signal);
  }
  sigprocmask(SIG_BLOCK, &watched, &inherited);
  const UniqueFd signals(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) {
    std::perror("pando-keeper: signalfd");
    return EXIT_FAILURE;
  }
  return Keeper(argv + 1, *watchdog, signals, inherited).Run();
}

}  // namespace
}  // namespace pando::keeper

int main(int argc, char** argv) { return pando::keeper::Main(argc, argv); }
