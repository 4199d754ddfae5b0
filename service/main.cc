// pandod: one KV cache under many LLM engines.

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "os/keeping/kept_descriptors.h"
#include "os/keeping/owner_lock.h"
#include "os/logging/log.h"
#include "os/monotonic_clock.h"
#include "os/service_manager.h"
#include "os/watchdog.h"
#include "service/memory/open_pool.h"
#include "service/metrics/catalogue.h"
#include "service/options/options.h"
#include "service/server.h"
#include "service/start_check.h"

namespace pando {
namespace {

constexpr int kUsageError = 2;

// Each connection and each watched process takes a descriptor, so the limit is
// raised as far as the system allows.
void RaiseDescriptorLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Warns if a limit on the size of files is set. The pool, lanes and tiers may
// need larger files, and their errors would not name the limit.
void WarnOfFileLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0) return;
  if (limit.rlim_cur == RLIM_INFINITY) return;
  Log(LogLevel::kWarning,
      "files and shared memory cannot be larger than `ulimit -f` allows",
      {{"bytes", limit.rlim_cur}});
}

sigset_t SetOf(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : signals) sigaddset(&set, signal);
  return set;
}

// The signals that stop the process. Only the main thread takes them.
const sigset_t kStopSignals = SetOf({SIGTERM, SIGINT});
// This process sends itself SIGUSR1 to look at its Wishes.
const sigset_t kSignals = SetOf({SIGTERM, SIGINT, SIGHUP, SIGUSR1});

// Returns the notice of a reload, which READY=1 ends.
std::string Reloading() {
  return absl::StrCat("RELOADING=1\nMONOTONIC_USEC=",
                      absl::ToUnixMicros(MonotonicNow()));
}

// The server wishes the main thread to do something by notifying one of these.
struct Wishes {
  absl::Notification begin_anew;  // its open pool has taken a layout
  absl::Notification restart;
  // The main thread sets this when it ends the process; it fulfils no wish
  // then.
  std::atomic<bool> is_stopping = false;

  bool any() const {
    return begin_anew.HasBeenNotified() || restart.HasBeenNotified();
  }
};

// Reads the options again, as at the start.
void Reload(Server& server, int argc, char** argv) {
  TellServiceManager(Reloading());
  const absl::StatusOr<CommandLine> command = ParseOptions(argc, argv, environ);
  if (command.ok()) {
    server.Reload(command->options);
  } else {
    Log(LogLevel::kError, "the options stay as they are",
        {{"error", command.status().message()}});
  }
  TellServiceManager("READY=1");
}

// Waits for a signal that stops the process, and returns it. SIGUSR1 counts
// only once there is a wish, because other processes may send it, too.
int WaitForStop(Server& server, Watchdog& watchdog, const Wishes& wishes,
                int argc, char** argv) {
  const timespec period = absl::ToTimespec(watchdog.period());
  while (true) {
    const int signal = sigtimedwait(&kSignals, nullptr, &period);
    if (signal == SIGHUP) {
      Reload(server, argc, argv);
    } else if (signal > 0 && (signal != SIGUSR1 || wishes.any())) {
      return signal;
    }
    watchdog.GiveSign();
  }
}

// Returns the notice that tells the service manager of the drain, and asks for
// the time that it may take.
std::string DrainNotice(absl::Duration drain_timeout) {
  constexpr absl::Duration kStop = absl::Seconds(15);
  return absl::StrCat("STOPPING=1\nSTATUS=draining\nEXTEND_TIMEOUT_USEC=",
                      absl::ToInt64Microseconds(drain_timeout + kStop));
}

// Waits until running requests have finished, the time is up, or a second
// signal comes.
void Drain(Server& server, Watchdog& watchdog) {
  constexpr timespec kStep = {.tv_sec = 0, .tv_nsec = 50'000'000};
  server.BeginDrain();
  const absl::Time deadline = MonotonicNow() + server.options().drain_timeout;
  while (!server.IsIdle() && MonotonicNow() < deadline) {
    watchdog.GiveSign();
    siginfo_t sent;
    // This process sends the signal for an operator's call, which asks for the
    // drain that is already under way.
    if (sigtimedwait(&kStopSignals, &sent, &kStep) > 0 &&
        sent.si_pid != getpid()) {
      Log(LogLevel::kWarning, "second signal: stopping at once");
      return;
    }
  }
}

// Ends the process in a way that its keeper takes for a death.
[[noreturn]] void EndForRestart(Server& server) {
  // The answer to the operator's call, and the log, go out meanwhile.
  absl::SleepFor(absl::Milliseconds(100));
  server.HoldCalls();
  constexpr timespec kNoTime = {};
  if (sigtimedwait(&kStopSignals, nullptr, &kNoTime) > 0) _exit(EXIT_SUCCESS);
  std::signal(SIGUSR2, SIG_DFL);
  const sigset_t ends = SetOf({SIGUSR2});
  pthread_sigmask(SIG_UNBLOCK, &ends, nullptr);
  raise(SIGUSR2);
  // The first process of a container does not end by it.
  kill(getpid(), SIGKILL);
  _exit(EXIT_FAILURE);
}

std::vector<char*> WithFlags(int argc, char** argv,
                             std::vector<std::string>& flags) {
  std::vector<char*> arguments(argv, argv + argc);
  for (std::string& flag : flags) arguments.push_back(flag.data());
  arguments.push_back(nullptr);
  return arguments;
}

// Returns the options of a pandod with these additional flags, or why it could
// not start.
absl::StatusOr<Options> OptionsWith(int argc, char** argv,
                                    std::vector<std::string> flags) {
  const std::vector<char*> arguments = WithFlags(argc, argv, flags);
  ASSIGN_OR_RETURN(CommandLine command,
                   ParseOptions(static_cast<int>(arguments.size()) - 1,
                                arguments.data(), environ));
  RETURN_IF_ERROR(CheckStart(command.options));
  return std::move(command.options);
}

// Executes pandod again in this process, with additional flags and with what is
// kept. Returns an exit status if it cannot.
int BeginAnew(int argc, char** argv, std::vector<std::string> flags,
              const KeptDescriptors& kept) {
  StopLog(EXIT_SUCCESS);
  if (kept.has_keeper()) kept.PassOn();
  execv("/proc/self/exe", WithFlags(argc, argv, flags).data());
  std::perror("pandod: cannot begin anew with the layout of its pool");
  return EXIT_FAILURE;
}

// Returns whether this pandod, whose pool is open, should begin anew with a
// kept layout.
bool GoesOnWith(const std::vector<std::string>& flags, int argc, char** argv,
                const Options& options) {
  if (!options.is_open || flags.empty()) return false;
  const absl::StatusOr<Options> begun = OptionsWith(argc, argv, flags);
  const absl::Status usable =
      begun.ok() ? CheckKeptLayout(options, *begun) : begun.status();
  if (usable.ok()) return true;
  Log(LogLevel::kWarning, "the kept layout of the pool is not used",
      {{"reason", usable.message()}});
  return false;
}

int CannotStart(const absl::Status& why) {
  Log(LogLevel::kCritical, "cannot start", {{"error", why.message()}});
  StopLog(EXIT_FAILURE);
  return EXIT_FAILURE;
}

int Main(int argc, char** argv) {
  // This is done first, because a signal may come at once, and before there are
  // threads, which inherit the mask. SIGPIPE would end pandod when the reader
  // of its log is gone, and SIGXFSZ when memory or a file is larger than
  // `ulimit -f` allows. The system calls that fail then report it.
  pthread_sigmask(SIG_BLOCK, &kSignals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  const absl::StatusOr<CommandLine> command = ParseOptions(argc, argv, environ);
  if (!command.ok()) {
    std::fprintf(stderr, "pandod: %s\n",
                 std::string(command.status().message()).c_str());
    return kUsageError;
  }
  if (command->check_start) {
    const absl::Status start = CheckStart(command->options);
    if (!start.ok()) {
      std::fprintf(stderr, "pandod: %s\n",
                   std::string(start.message()).c_str());
      return kUsageError;
    }
  }
  const std::string text =
      command->print_metrics ? MetricCatalogueJson() : command->print;
  if (!text.empty()) {
    std::fputs(text.c_str(), stdout);
    return EXIT_SUCCESS;
  }
  // A process that began anew by /proc/self/exe would be named "exe".
  pthread_setname_np(pthread_self(), "pandod");
  // Debian's Abseil looks for deadlocks at each lock, also at gRPC's. That
  // takes a tenth of a call's time.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const Options& options = command->options;
  StartLog(options.log_level, options.log_format);
  RaiseDescriptorLimit();
  WarnOfFileLimit();
  absl::StatusOr<KeptDescriptors> given = KeptDescriptors::FromEnvironment();
  if (!given.ok()) return CannotStart(given.status());
  KeptDescriptors& kept = *given;
  if (options.keep == "no") kept.Abandon();
  // The lock is held until this process ends, in whatever way.
  const absl::StatusOr<UniqueFd> owner = OwnKept(kept);
  if (!owner.ok()) return CannotStart(owner.status());
  std::vector<std::string> layout_flags = KeptLayout(kept);
  if (GoesOnWith(layout_flags, argc, argv, options)) {
    return BeginAnew(argc, argv, std::move(layout_flags), kept);
  }
  Wishes wishes;
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(
      options, &kept, [] { kill(getpid(), SIGTERM); },
      [&] {
        if (wishes.is_stopping) return false;
        if (!wishes.restart.HasBeenNotified()) wishes.restart.Notify();
        kill(getpid(), SIGUSR1);
        return true;
      },
      [&](const std::vector<std::string>& flags) {
        RETURN_IF_ERROR(OptionsWith(argc, argv, flags).status());
        layout_flags = flags;
        wishes.begin_anew.Notify();
        kill(getpid(), SIGUSR1);
        return absl::OkStatus();
      });
  if (!server.ok()) {
    KeepLayout({}, kept);  // the next pandod may not need it
    return CannotStart(server.status());
  }
  TellServiceManager("READY=1\nSTATUS=serving");
  Watchdog watchdog([&] { return (*server)->turns(); });
  const int signal = WaitForStop(**server, watchdog, wishes, argc, argv);
  if (signal == SIGUSR1 && wishes.restart.HasBeenNotified()) {
    EndForRestart(**server);
  }
  wishes.is_stopping = true;
  if (signal == SIGUSR1) {
    // No sign of life is due until it serves again.
    TellServiceManager(Reloading());
    // A kept socket goes on listening, so its file must stay.
    if (!kept.has_keeper()) server->reset();
    KeepLayout(layout_flags, kept);
    return BeginAnew(argc, argv, std::move(layout_flags), kept);
  }
  TellServiceManager(DrainNotice((*server)->options().drain_timeout));
  Log(LogLevel::kInfo, "draining",
      {{"signal", signal == SIGTERM ? "SIGTERM" : "SIGINT"}});
  Drain(**server, watchdog);
  server->reset();
  Log(LogLevel::kInfo, "stopped");
  StopLog(EXIT_SUCCESS);
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace pando

int main(int argc, char** argv) { return pando::Main(argc, argv); }
