// pando-mover: copies pages between one device and the tiers of a pandod.
// pandod has no CUDA context; this process has, and may crash.

#include <sys/signalfd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/default_socket.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "cuda/device.h"
#include "mover/host_page_copier.h"
#include "mover/pandod_link.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace pando::mover {
namespace {

constexpr int kUsageError = 2;
// The time between two attempts to connect.
constexpr timespec kRetryPeriod = {.tv_sec = 0, .tv_nsec = 300'000'000};

struct Options {
  std::string socket;  // empty: beside the one that calls go to
  std::string device = "0";
};

// Returns pandod's name for the device.
absl::StatusOr<std::string> NameOf(const std::string& device) {
  if (device == kHostDevice) return device;
  ASSIGN_OR_RETURN(const cuda::Device gpu, cuda::FindDevice(device));
  return absl::StrCat("cuda:", gpu.uuid);
}

// Returns the path of the socket. It is looked up anew for each attempt,
// because a pandod that starts later may be elsewhere.
std::string SocketNow(const Options& options) {
  if (!options.socket.empty()) return options.socket;
  return std::filesystem::path(SocketToCall()).replace_filename("mover.sock");
}

// Serves one pandod after the other, until a signal comes.
absl::Status Run(const Options& options, const sigset_t& stop_signals) {
  const UniqueFd stop(signalfd(-1, &stop_signals, SFD_CLOEXEC));
  if (!stop.valid()) return absl::ErrnoToStatus(errno, "signalfd");
  ASSIGN_OR_RETURN(const std::string device, NameOf(options.device));
  std::string last_message;
  while (true) {
    absl::StatusOr<PandodLink> link =
        PandodLink::Connect(SocketNow(options), device);
    if (link.ok()) last_message.clear();
    const absl::Status status = link.ok() ? link->Serve(stop) : link.status();
    if (!absl::IsUnavailable(status)) return status;
    if (status.message() != last_message) {
      last_message = std::string(status.message());
      spdlog::warn("{}; trying again", last_message);
    }
    if (sigtimedwait(&stop_signals, nullptr, &kRetryPeriod) > 0) {
      return absl::OkStatus();
    }
  }
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Copies pages between one device and the tiers of a pandod, which has no "
      "CUDA context. One is needed for each device of the pool; it may be "
      "ended and started again at any time.",
      "pando-mover");
  app.set_version_flag("--version", "pando-mover " PANDO_VERSION);
  app.add_option("--socket", options.socket,
                 "pandod's --mover-socket; waits until it is there; if empty, "
                 "mover.sock beside the socket that pandod has by default");
  app.add_option("--device", options.device,
                 "GPU by its number here or its UUID, as in --pool-devices; "
                 "host for a pool in host memory")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? EXIT_SUCCESS : kUsageError;
  }
  spdlog::set_default_logger(spdlog::stderr_logger_mt("pando-mover"));
  sigset_t stop_signals;
  sigemptyset(&stop_signals);
  sigaddset(&stop_signals, SIGTERM);
  sigaddset(&stop_signals, SIGINT);
  sigprocmask(SIG_BLOCK, &stop_signals, nullptr);
  const absl::Status status = Run(options, stop_signals);
  if (status.ok()) return EXIT_SUCCESS;
  spdlog::critical("{}", std::string(status.message()));
  return EXIT_FAILURE;
}

}  // namespace
}  // namespace pando::mover

int main(int argc, char** argv) { return pando::mover::Main(argc, argv); }
