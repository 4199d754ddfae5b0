// replay: a recorded trace through client processes against a real pandod.
#include <sched.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "bench/replay/pandod_process.h"
#include "bench/replay/report.h"
#include "bench/replay/trace.h"
#include "bench/replay/worker_process.h"
#include "pando/client.h"

namespace pando::replay {
namespace {

struct Options {
  std::string trace;
  size_t max_requests = 0;
  uint32_t clients = 1;
  std::string pandod;
  std::string address;
  uint64_t pool_tokens = 5'000'000;
  uint64_t pool_pages = 0;
  uint32_t page_tokens = 16;
  bool with_output = false;
  bool same_core = false;
  std::string json;
};

// A pandod of our own in a folder of its own, both gone at the end; or one
// that runs already, of which only the address is known.
struct Server {
  std::string address;
  std::filesystem::path folder;
  std::vector<PandodProcess> process;

  Server() = default;
  Server(Server&&) = default;
  ~Server() {
    process.clear();
    if (!folder.empty()) std::filesystem::remove_all(folder);
  }

  absl::Status Stop() {
    return process.empty() ? absl::OkStatus() : process.front().Stop();
  }
};

absl::StatusOr<Server> StartServer(const Options& options) {
  Server server;
  if (!options.address.empty()) {
    server.address = options.address;
    return server;
  }
  std::string folder =
      (std::filesystem::temp_directory_path() / "pando-replay-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    return absl::ErrnoToStatus(errno, folder);
  }
  server.folder = folder;
  const std::string socket = absl::StrCat(folder, "/pando.sock");
  server.address = absl::StrCat("unix:", socket);
  // One more page: the padding page holds no tokens.
  const uint64_t pages = options.pool_pages > 0
                             ? options.pool_pages
                             : options.pool_tokens / options.page_tokens + 1;
  // Nobody reads or writes KV here, so its layout is as small as can be.
  absl::StatusOr<PandodProcess> process = PandodProcess::Start(
      options.pandod, socket,
      {"--http", "", "--pool-pages", absl::StrCat(pages), "--page-tokens",
       absl::StrCat(options.page_tokens), "--layers", "1", "--heads", "1",
       "--head-size", "1", "--dtype", "float8_e4m3", "--log-level", "error"});
  if (!process.ok()) return process.status();
  server.process.push_back(*std::move(process));
  return server;
}

// This process and all it starts run on the first CPU it may use.
absl::Status PinToOneCpu() {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
    return absl::ErrnoToStatus(errno, "sched_getaffinity");
  }
  int cpu = 0;
  while (!CPU_ISSET(cpu, &allowed)) ++cpu;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  return sched_setaffinity(0, sizeof(one), &one) == 0
             ? absl::OkStatus()
             : absl::ErrnoToStatus(errno, "sched_setaffinity");
}

absl::StatusOr<std::vector<WorkerProcess>> StartWorkers(
    const Options& options, const std::string& address,
    const std::vector<TraceRequest>& trace) {
  std::vector<WorkerProcess> workers;
  for (uint32_t i = 0; i < options.clients; ++i) {
    absl::StatusOr<WorkerProcess> worker =
        WorkerProcess::Start(address, trace,
                             {.index = i,
                              .count = options.clients,
                              .with_output = options.with_output});
    if (!worker.ok()) return worker.status();
    workers.push_back(*std::move(worker));
  }
  for (WorkerProcess& worker : workers) {
    if (absl::Status status = worker.WaitReady(); !status.ok()) return status;
  }
  return workers;
}

absl::StatusOr<std::vector<WorkerResult>> RunWorkers(
    std::vector<WorkerProcess>& workers) {
  for (WorkerProcess& worker : workers) {
    if (absl::Status status = worker.Go(); !status.ok()) return status;
  }
  std::vector<WorkerResult> results;
  for (WorkerProcess& worker : workers) {
    absl::StatusOr<WorkerResult> result = worker.Finish();
    if (!result.ok()) return result.status();
    results.push_back(*std::move(result));
  }
  return results;
}

absl::StatusOr<Report> Replay(const Options& options) {
  const absl::StatusOr<std::vector<TraceRequest>> trace =
      ReadTrace(options.trace, options.max_requests);
  if (!trace.ok()) return trace.status();
  if (options.same_core) {
    if (absl::Status status = PinToOneCpu(); !status.ok()) return status;
  }
  absl::StatusOr<Server> server = StartServer(options);
  if (!server.ok()) return server.status();
  absl::StatusOr<std::vector<WorkerProcess>> workers =
      StartWorkers(options, server->address, *trace);
  if (!workers.ok()) return workers.status();

  // From here on this process uses gRPC, and forks no more.
  absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect({.address = server->address,
                       .name = "replay",
                       .timeout = absl::Seconds(60)});
  if (!client.ok()) return client.status();
  const absl::StatusOr<Stats> before = (*client)->GetStats();
  if (!before.ok()) return before.status();
  const absl::StatusOr<std::vector<WorkerResult>> results =
      RunWorkers(*workers);
  if (!results.ok()) return results.status();
  const absl::StatusOr<Stats> after = (*client)->GetStats();
  if (!after.ok()) return after.status();
  const absl::StatusOr<std::vector<std::string>> violations =
      (*client)->CheckInvariants();
  if (!violations.ok()) return violations.status();
  client->reset();

  Report report;
  report.unlimited = UnlimitedCacheHits(*trace);
  report.invariant_violations = *violations;
  AddResults(*results, &report);
  AddStats(*before, *after, &report);
  if (absl::Status status = server->Stop(); !status.ok()) return status;
  return report;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Replays a recorded trace through client processes against a real "
      "pandod: for each request one MatchPrefix (match, lock, reserve) and one "
      "Insert (publish, unlock, free). Fails when the accounts do not add up.");
  app.add_option("trace", options.trace,
                 "Trace: JSON lines, plain or gzipped, in blocks of 512 tokens")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_option("--requests", options.max_requests,
                 "Replay only the first so many");
  app.add_option("--clients", options.clients,
                 "Client processes; requests are dealt out in order")
      ->check(CLI::Range(1, 256));
  auto* const server = app.add_option_group("server");
  server->add_option("--pandod", options.pandod, "Program to start");
  server->add_option("--address", options.address,
                     "A pandod that runs already and serves nobody else, for "
                     "example unix:/run/pando/pando.sock");
  server->require_option(1);
  auto* const tokens = app.add_option(
      "--pool-tokens", options.pool_tokens,
      "Size of the pool of the pandod that is started, in tokens");
  app.add_option("--pool-pages", options.pool_pages,
                 "The same in pages, with the padding page")
      ->excludes(tokens);
  app.add_option("--page-tokens", options.page_tokens, "Tokens of a page")
      ->check(CLI::PositiveNumber);
  app.add_flag("--with-output", options.with_output,
               "Reserve room for the output of a request, too");
  app.add_flag("--same-core", options.same_core,
               "Run the clients and pandod on one CPU: stable times");
  app.add_option("--json", options.json, "Write the result here, too");
  CLI11_PARSE(app, argc, argv);

  // As in pandod: Debian's Abseil looks for deadlocks at each lock of gRPC.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const absl::StatusOr<Report> report = Replay(options);
  if (!report.ok()) {
    std::cerr << "replay: " << report.status().ToString() << std::endl;
    return 1;
  }
  std::cout << ToTable(*report);
  if (!options.json.empty() &&
      !(std::ofstream(options.json) << ToJson(*report)).flush()) {
    std::cerr << "replay: cannot write " << options.json << std::endl;
    return 1;
  }
  return report->invariant_violations.empty() && report->problems.empty() ? 0
                                                                          : 1;
}

}  // namespace
}  // namespace pando::replay

int main(int argc, char** argv) { return pando::replay::Main(argc, argv); }
