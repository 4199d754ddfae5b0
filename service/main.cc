// pandod: one KV cache under many LLM engines.

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "service/logging/log.h"
#include "service/metrics/catalogue.h"
#include "service/options.h"
#include "service/server.h"

namespace pando {
namespace {

constexpr int kUsageError = 2;

// A descriptor for each connection and each watched process: as many as
// allowed.
void RaiseDescriptorLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// SIGTERM and SIGINT, taken by sigwait on the main thread only.
sigset_t BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Waits until running requests have finished, the time is up, or a second
// signal comes.
void Drain(Server& server, const sigset_t& signals, absl::Duration timeout) {
  constexpr timespec kStep = {.tv_sec = 0, .tv_nsec = 50'000'000};
  server.BeginDrain();
  const absl::Time deadline = absl::Now() + timeout;
  while (!server.IsIdle() && absl::Now() < deadline) {
    siginfo_t sent;
    // From this process: an operator's call asks for what is being done.
    if (sigtimedwait(&signals, &sent, &kStep) > 0 && sent.si_pid != getpid()) {
      Log(LogLevel::kWarning, "second signal: stopping at once");
      return;
    }
  }
}

int Main(int argc, char** argv) {
  const absl::StatusOr<CommandLine> command = ParseOptions(argc, argv, environ);
  if (!command.ok()) {
    std::fprintf(stderr, "pandod: %s\n",
                 std::string(command.status().message()).c_str());
    return kUsageError;
  }
  const std::string text =
      command->print_metrics ? MetricCatalogueJson() : command->print;
  if (!text.empty()) {
    std::fputs(text.c_str(), stdout);
    return EXIT_SUCCESS;
  }
  // Debian's Abseil looks for deadlocks at each lock, gRPC's included: a tenth
  // of a call.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const Options& options = command->options;
  // Before there are threads. Whoever reads the log may go.
  const sigset_t signals = BlockStopSignals();
  std::signal(SIGPIPE, SIG_IGN);
  StartLog(options.log_level, options.log_format);
  RaiseDescriptorLimit();
  absl::StatusOr<std::unique_ptr<Server>> server =
      Server::Start(options, [] { kill(getpid(), SIGTERM); });
  if (!server.ok()) {
    Log(LogLevel::kCritical, "cannot start",
        {{"error", server.status().message()}});
    StopLog();
    return EXIT_FAILURE;
  }
  int signal = 0;
  sigwait(&signals, &signal);
  Log(LogLevel::kInfo, "draining",
      {{"signal", signal == SIGTERM ? "SIGTERM" : "SIGINT"}});
  Drain(**server, signals, options.drain_timeout);
  server->reset();
  Log(LogLevel::kInfo, "stopped");
  StopLog();
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace pando

int main(int argc, char** argv) { return pando::Main(argc, argv); }
