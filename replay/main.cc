// replay: replays a recorded trace on the cache, in this process or through
// pandod.
#include <sched.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/eviction_policies.h"
#include "base/status_macros.h"
#include "replay/replays.h"

namespace pando::replay {
namespace {

// Makes this process, and all processes that it starts, run on the first CPU
// that it may use.
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

// Runs a replay for each policy and pool size, and adds the hits of the caches
// that it is compared with.
absl::StatusOr<std::vector<Report>> ReplayAll(const Options& options,
                                              const Trace& trace) {
  const HitTokens unlimited = UnlimitedCacheHits(trace);
  std::vector<Report> reports;
  for (const uint64_t pool_tokens : options.pool_tokens) {
    const HitTokens block_lru = BlockLruHits(trace, pool_tokens);
    for (const std::string& policy : options.policies) {
      ASSIGN_OR_RETURN(
          Report report,
          options.in_process
              ? ReplayInProcess(options, trace, policy, pool_tokens)
              : ReplayThroughPandod(options, trace));
      report.block_lru = block_lru;
      report.unlimited = unlimited;
      reports.push_back(std::move(report));
    }
  }
  return reports;
}

absl::StatusOr<std::vector<Report>> Run(const Options& options) {
  ASSIGN_OR_RETURN(const Trace trace,
                   ReadTrace(options.trace, options.max_requests));
  if (options.same_core) {
    RETURN_IF_ERROR(PinToOneCpu());
  }
  return ReplayAll(options, trace);
}

void AddWhere(CLI::App& app, Options& options) {
  auto* const where = app.add_option_group("where");
  where->add_flag("--in-process", options.in_process,
                  "A cache in this process");
  where->add_option("--pandod", options.pandod, "Program to start");
  where->add_option("--address", options.address,
                    "A pandod that runs already and serves no one else, for "
                    "example unix:/run/pando/pando.sock");
  where->require_option(1);
}

void AddCache(CLI::App& app, Options& options) {
  app.add_option("--pool-tokens", options.pool_tokens,
                 "Size of the pool, in tokens (with --address: what it has); "
                 "several with --in-process")
      ->delimiter(',');
  app.add_option("--page-tokens", options.page_tokens, "Tokens of a page")
      ->check(CLI::PositiveNumber);
  app.add_option("--policy", options.policies,
                 "Order of eviction; several, or all, with --in-process")
      ->delimiter(',');
}

void AddRequests(CLI::App& app, Options& options) {
  app.add_option("trace", options.trace, "Trace, plain or gzipped")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_option("--requests", options.max_requests,
                 "Replay only the first so many");
  app.add_flag("--handles", options.use_handles,
               "Begin where earlier requests ended, and send only the tokens "
               "that come after");
  app.add_flag("--with-output", options.with_output,
               "Reserve room for the output of a request, too");
  app.add_flag("--tell-ends", options.tell_ends,
               "Tell of each prompt that no later one of the trace continues "
               "that it has ended: the most that such hints can gain");
}

void AddProcesses(CLI::App& app, Options& options) {
  app.add_option("--clients", options.clients,
                 "Client processes; requests are dealt out in order")
      ->check(CLI::Range(1, 256));
  app.add_option("--transport", options.transport,
                 "How calls go; without it, by a lane if there is one")
      ->check(CLI::IsMember({"lane", "grpc"}));
  app.add_option("--echo-server", options.echo_server,
                 "Program of the floor: after each request its messages are "
                 "sent once more to a server that does nothing");
  app.add_flag("--same-core", options.same_core,
               "Run all processes on one CPU: stable times");
  app.add_option("--json", options.json, "Write the result here, too");
}

// Completes the options. Returns what is wrong with them, or an empty text.
std::string Complete(Options& options) {
  if (options.policies == std::vector<std::string>{"all"}) {
    options.policies.clear();
    options.policies.assign(kEvictionPolicyNames.begin(),
                            kEvictionPolicyNames.end());
  }
  const bool is_many =
      options.policies.size() > 1 || options.pool_tokens.size() > 1;
  return is_many && !options.in_process
             ? "several policies or pools need --in-process"
             : "";
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Replays a recorded trace: for each request one MatchPrefix (match, "
      "lock, reserve) and one Insert (publish, unlock, free). Fails when the "
      "accounts do not add up.");
  AddRequests(app, options);
  AddWhere(app, options);
  AddCache(app, options);
  AddProcesses(app, options);
  CLI11_PARSE(app, argc, argv);
  if (const std::string error = Complete(options); !error.empty()) {
    std::cerr << "replay: " << error << std::endl;
    return 1;
  }

  // Debian's Abseil looks for deadlocks at each lock of gRPC. This turns it
  // off, as pandod does.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const absl::StatusOr<std::vector<Report>> reports = Run(options);
  if (!reports.ok()) {
    std::cerr << "replay: " << reports.status().ToString() << std::endl;
    return 1;
  }
  std::cout << (reports->size() == 1 ? ToTable(reports->front())
                                     : ToTable(*reports));
  if (!options.json.empty() &&
      !(std::ofstream(options.json) << ToJson(*reports)).flush()) {
    std::cerr << "replay: cannot write " << options.json << std::endl;
    return 1;
  }
  bool is_ok = true;
  for (const Report& report : *reports) is_ok &= report.is_ok();
  return is_ok ? 0 : 1;
}

}  // namespace
}  // namespace pando::replay

int main(int argc, char** argv) { return pando::replay::Main(argc, argv); }
