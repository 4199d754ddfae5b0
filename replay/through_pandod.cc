#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "pando/operator.h"
#include "replay/pandod_process.h"
#include "replay/replays.h"
#include "replay/worker_process.h"

namespace pando::replay {
namespace {

constexpr absl::Duration kProgressPeriod = absl::Milliseconds(200);

// The servers that a replay needs, and the folder of their sockets. The
// destructor ends and removes all of them.
class Servers {
 public:
  Servers() = default;
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;
  ~Servers() {
    pandod_.reset();
    echo_server_.reset();
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  absl::Status Start(const Options& options) {
    std::string folder =
        std::filesystem::temp_directory_path() / "replay-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) {
      return absl::ErrnoToStatus(errno, folder);
    }
    folder_ = folder;
    RETURN_IF_ERROR(StartPandod(options));
    return StartEchoServer(options);
  }

  const WorkerAddresses& addresses() const { return addresses_; }

  absl::Status Stop() {
    return pandod_.has_value() ? pandod_->Stop() : absl::OkStatus();
  }

 private:
  absl::Status StartPandod(const Options& options) {
    addresses_.pandod = options.address;
    addresses_.tls = options.tls;
    addresses_.token = options.token;
    if (!options.address.empty()) return absl::OkStatus();
    // No KV is read or written here, so the layout is as small as possible.
    return StartProcess(
        options.pandod, "pando.sock",
        {"--http", "", "--pool-pages",
         absl::StrCat(options.PoolPages(options.pool_tokens.front())),
         "--page-tokens", absl::StrCat(options.page_tokens), "--layers", "1",
         "--heads", "1", "--head-size", "1", "--dtype", "float8_e4m3",
         "--eviction-policy", options.policies.front(), "--log-level", "error"},
        pandod_, addresses_.pandod);
  }

  absl::Status StartEchoServer(const Options& options) {
    if (options.echo_server.empty()) return absl::OkStatus();
    return StartProcess(options.echo_server, "echo.sock",
                        {"--page-tokens", absl::StrCat(options.page_tokens)},
                        echo_server_, addresses_.echo_server);
  }

  absl::Status StartProcess(const std::string& program, const char* socket,
                            const std::vector<std::string>& flags,
                            std::optional<PandodProcess>& process,
                            std::string& address) {
    const std::string path = absl::StrCat(folder_, "/", socket);
    ASSIGN_OR_RETURN(PandodProcess started,
                     PandodProcess::Start(program, path, flags));
    process.emplace(std::move(started));
    address = absl::StrCat("unix:", path);
    return absl::OkStatus();
  }

  std::string folder_;
  std::optional<PandodProcess> pandod_;
  std::optional<PandodProcess> echo_server_;
  WorkerAddresses addresses_;
};

absl::StatusOr<std::vector<WorkerProcess>> StartWorkers(
    const Options& options, const WorkerAddresses& addresses,
    const Trace& trace) {
  std::vector<WorkerProcess> workers;
  for (uint32_t i = 0; i < options.clients; ++i) {
    ASSIGN_OR_RETURN(WorkerProcess worker,
                     WorkerProcess::Start(addresses, trace,
                                          {.index = i,
                                           .count = options.clients,
                                           .with_output = options.with_output,
                                           .use_handles = options.use_handles,
                                           .tell_ends = options.tell_ends,
                                           .transport = options.transport,
                                           .timeout = options.timeout}));
    workers.push_back(std::move(worker));
  }
  for (WorkerProcess& worker : workers) {
    RETURN_IF_ERROR(worker.WaitReady());
  }
  return workers;
}

absl::StatusOr<std::vector<WorkerResult>> RunWorkers(
    std::vector<WorkerProcess>& workers,
    const std::function<void()>& meanwhile) {
  for (WorkerProcess& worker : workers) {
    RETURN_IF_ERROR(worker.Go());
  }
  std::vector<WorkerResult> results;
  for (WorkerProcess& worker : workers) {
    while (!worker.HasEnded(kProgressPeriod)) meanwhile();
    ASSIGN_OR_RETURN(WorkerResult result, worker.Finish());
    results.push_back(std::move(result));
  }
  return results;
}

absl::StatusOr<Accounts> TakeAccounts(Operator& asked) {
  ASSIGN_OR_RETURN(const Stats stats, asked.GetStats());
  ASSIGN_OR_RETURN(const std::vector<std::string> violations,
                   asked.CheckInvariants());
  const CacheCounters& counters = stats.counters;
  const PageStates& pages = stats.pages;
  return Accounts{.policy = stats.eviction_policy,
                  .matches = counters.matches,
                  .hit_tokens = counters.hit_tokens,
                  .inserted_pages = counters.inserted_pages,
                  .evicted_pages = counters.evicted_pages_for_allocation,
                  .allocation_failures = counters.allocation_failures,
                  .locks = stats.locks,
                  .pages = {.free = pages.free,
                            .reserved = pages.reserved,
                            .evictable = pages.evictable,
                            .protected_pages = pages.protected_pages,
                            .quarantined = pages.quarantined,
                            .padding = pages.padding,
                            .capacity = pages.capacity},
                  .invariant_violations = violations};
}

}  // namespace

absl::StatusOr<Report> ReplayThroughPandod(const Options& options,
                                           const Trace& trace,
                                           const OnProgress& on_progress) {
  Servers servers;
  RETURN_IF_ERROR(servers.Start(options));
  ASSIGN_OR_RETURN(std::vector<WorkerProcess> workers,
                   StartWorkers(options, servers.addresses(), trace));

  // From here on this process uses gRPC, and forks no more.
  const WorkerAddresses& addresses = servers.addresses();
  ASSIGN_OR_RETURN(std::unique_ptr<Operator> asked,
                   Operator::Make({.address = addresses.pandod,
                                   .timeout = absl::Seconds(60),
                                   .tls = addresses.tls,
                                   .token = addresses.token}));
  ASSIGN_OR_RETURN(const Accounts before, TakeAccounts(*asked));
  const absl::StatusOr<std::vector<WorkerResult>> results =
      RunWorkers(workers, [&] {
        const absl::StatusOr<Stats> stats = asked->GetStats();
        if (!stats.ok()) return;  // the workers find that out, too
        on_progress(stats->counters.matches - before.matches);
      });
  if (!results.ok()) return results.status();
  ASSIGN_OR_RETURN(const Accounts after, TakeAccounts(*asked));
  asked.reset();

  Report report;
  report.pool_tokens = options.pool_tokens.front();
  AddResults(*results, &report);
  AddAccounts(before, after, &report);
  RETURN_IF_ERROR(servers.Stop());
  return report;
}

}  // namespace pando::replay
