// pando-keeper starts pandod and keeps the descriptors that it gives away. When
// pandod dies, the keeper starts it again and hands them back.

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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
#include "keeper/notify_socket.h"

namespace pando::keeper {
namespace {

constexpr int kUsageError = 2;
constexpr int kSignalBase = 128;  // added to a signal in an exit code

constexpr char kHelp[] =
    "Starts pandod and, when it is killed or crashes, starts it again with "
    "the\n"
    "sockets and the memory that it had.\n\n"
    "Usage: pando-keeper PROGRAM [OPTIONS OF IT]\n\n"
    "Positionals:\n"
    "  PROGRAM                     pandod, with its options\n\n"
    "Options:\n"
    "  -h,--help                   Print this help message and exit\n"
    "  --version                   Display program version information and "
    "exit\n";

constexpr pid_t kNoProcess = -1;

bool IsStop(int signal) { return signal == SIGTERM || signal == SIGINT; }

// Keeps one program running. Single-threaded.
class Keeper {
 public:
  // `signals` is a signalfd of the signals that are passed on, and of SIGCHLD.
  // The program blocks the signals in `inherited`.
  Keeper(char* const* command, const UniqueFd& signals,
         const sigset_t& inherited)
      : command_(command), signals_(signals.get()), inherited_(inherited) {}

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
      notify_.Receive(child_ > 0 ? child_ : kNoProcess, store_);
      PassSignalsOn();
      if (child_ == 0 && is_stopping_) return EXIT_SUCCESS;
      if (const std::optional<int> code = Reap()) return *code;
    }
  }

 private:
  using Clock = BackOff::Clock;

  bool Start() {
    child_ = StartChild(command_, store_, notify_.address(), inherited_);
    if (child_ < 0) std::perror("pando-keeper: fork");
    started_at_ = Clock::now();
    return child_ > 0;
  }

  // Waits for a signal, a message or the time to start the program.
  void Wait() const {
    pollfd polled[] = {{signals_, POLLIN, 0}, {notify_.fd(), POLLIN, 0}};
    int timeout = -1;
    if (child_ == 0) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(
          start_at_ - Clock::now());
      timeout = std::max(0, static_cast<int>(left.count()));
    }
    poll(polled, std::size(polled), timeout);
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
    notify_.Receive(child_, store_);  // what it sent before it died
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
  BackOff back_off_;
  pid_t child_ = 0;  // 0: the program is started at start_at_
  Clock::time_point start_at_ = {};
  Clock::time_point started_at_ = {};
  bool is_stopping_ = false;
};

int Main(int argc, char** argv) {
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
  return Keeper(argv + 1, signals, inherited).Run();
}

}  // namespace
}  // namespace pando::keeper

int main(int argc, char** argv) { return pando::keeper::Main(argc, argv); }
