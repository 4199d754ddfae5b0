// kv_events_bench: what the events for routers cost the calls of workers, how
// soon a router knows what was inserted, and how long all that is cached takes
// to be announced. Rounds with and without events are interleaved; prints JSON
// with a value for each round.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "bench/kv_events/subscriber.h"
#include "bench/kv_events/thread_times.h"
#include "bench/load/load.h"
#include "bench/load/scraper.h"
#include "replay/pandod_process.h"

namespace pando::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kClients = 4;
constexpr int kRounds = 12;
constexpr std::chrono::seconds kRoundTime{1};
constexpr uint32_t kPromptTokens = 1024;
constexpr uint32_t kPromptPages = kPromptTokens / kPageTokens;
constexpr int kTimedInserts = 1000;
constexpr uint32_t kAnnouncedBlocks = 20'000;
constexpr int kAnnouncements = 5;
// Those of pandod that do nothing but publish: one encodes, one sends.
const std::vector<std::string> kPublishingThreads = {"events", "ZMQbg/IO/0"};

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

template <typename T>
T OrExit(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  std::cerr << result.status() << "\n";
  std::exit(1);
}

// A pandod in a folder of its own, with or without events.
class Machine {
 public:
  Machine(const std::string& pandod, const std::string& folder,
          uint32_t pool_pages, bool publishes)
      : socket_(folder + "/pando.sock"),
        http_port_(FreePort()),
        endpoint_(absl::StrCat("tcp://127.0.0.1:", FreePort())),
        process_(OrExit(PandodProcess::Start(pandod, MadeSocket(folder),
                                             Flags(pool_pages, publishes)))) {}

  std::string address() const { return "unix:" + socket_; }
  const std::string& endpoint() const { return endpoint_; }
  double PublishingSeconds() const {
    return ThreadSeconds(process_.pid(), kPublishingThreads);
  }
  double EvictedPages() const {
    double pages = 0;
    std::istringstream lines(Scrape(http_port_));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("pando_evicted_pages_total{")) {
        pages += std::stod(line.substr(line.rfind(' ')));
      }
    }
    return pages;
  }

 private:
  std::string MadeSocket(const std::string& folder) {
    std::filesystem::create_directories(folder);
    return socket_;
  }
  std::vector<std::string> Flags(uint32_t pool_pages, bool publishes) const {
    std::vector<std::string> flags = {
        "--http",        absl::StrCat("127.0.0.1:", http_port_),
        "--pool-pages",  absl::StrCat(pool_pages),
        "--page-tokens", absl::StrCat(kPageTokens),
        "--layers",      "1",
        "--heads",       "1",
        "--head-size",   "1",
        "--log-level",   "error"};
    if (publishes) flags.insert(flags.end(), {"--kv-events", endpoint_});
    return flags;
  }

  const std::string socket_;
  const int http_port_;
  const std::string endpoint_;
  PandodProcess process_;
};

// Calls of workers with events, beside those of as many without. The pools are
// full, so that as many blocks are removed as stored.
nlohmann::json MeasureCalls(const std::string& pandod,
                            const std::string& folder, int subscribers) {
  Machine quiet(pandod, folder + "/quiet", kPoolPages, false);
  Machine publishing(pandod, folder + "/publishing", kPoolPages, true);
  Load quiet_load(quiet.address(), kClients);
  Load publishing_load(publishing.address(), kClients);
  std::vector<std::unique_ptr<Reader>> readers;
  for (int i = 0; i < subscribers; ++i) {
    readers.push_back(std::make_unique<Reader>(publishing.endpoint()));
  }
  quiet_load.Run(kRoundTime, [] {});
  publishing_load.Run(kRoundTime, [] {});

  const double evicted_before = publishing.EvictedPages();
  const double seconds_before = publishing.PublishingSeconds();
  std::vector<double> off_p99_us, on_p99_us;
  for (int round = 0; round < kRounds; ++round) {
    off_p99_us.push_back(P99(quiet_load.Run(kRoundTime, [] {})));
    on_p99_us.push_back(P99(publishing_load.Run(kRoundTime, [] {})));
  }
  return {
      {"subscribers", subscribers},
      {"off_p99_us", off_p99_us},
      {"on_p99_us", on_p99_us},
      {"seconds", kRounds * std::chrono::seconds(kRoundTime).count()},
      {"blocks", 2 * (publishing.EvictedPages() - evicted_before)},
      {"publishing_seconds", publishing.PublishingSeconds() - seconds_before}};
}

// Inserts a prompt of its own for each number.
void InsertPrompt(Client& client, uint32_t number) {
  std::vector<Token> prompt(kPromptTokens + 1);
  std::iota(prompt.begin(), prompt.end(), number * prompt.size());
  Match match = OrExit(client.MatchPrefix(
      prompt, {.lock = true, .reserve_tokens = kPromptTokens}));
  OrExit(client.Insert({}, match.reserved.ids,
                       {.lock = &match.lock,
                        .lock_action = LockAction::kUnlock,
                        .prompt_tokens = kPromptTokens}));
}

std::unique_ptr<Client> Connect(const Machine& machine) {
  return OrExit(Client::Connect(
      {.address = machine.address(), .name = "kv_events_bench"}));
}

// From before the call to the frame. Nothing is evicted, so that each request
// makes one frame.
std::vector<double> InsertToFrame(const std::string& pandod,
                                  const std::string& folder) {
  const Machine machine(pandod, folder + "/latency",
                        (kTimedInserts + 2) * kPromptPages, true);
  const auto client = Connect(machine);
  Subscriber subscriber(machine.endpoint());
  InsertPrompt(*client, 0);
  while (StoredBlocks(subscriber.Next()) < kPromptPages) continue;
  std::vector<double> milliseconds;
  for (int i = 1; i <= kTimedInserts; ++i) {
    const Clock::time_point start = Clock::now();
    InsertPrompt(*client, i);
    subscriber.Next();
    milliseconds.push_back(1e3 * Since(start));
  }
  return milliseconds;
}

// From the subscription to the last block. Of each pandod the first: there is
// at most one announcement a second.
double Announcement(const std::string& pandod, const std::string& folder) {
  const Machine machine(pandod, folder, kAnnouncedBlocks + 2 * kPromptPages,
                        true);
  const auto client = Connect(machine);
  for (uint32_t i = 0; i * kPromptPages < kAnnouncedBlocks; ++i) {
    InsertPrompt(*client, i);
  }
  const Clock::time_point start = Clock::now();
  Subscriber subscriber(machine.endpoint());
  size_t blocks = 0;
  while (blocks < kAnnouncedBlocks) blocks += StoredBlocks(subscriber.Next());
  return 1e3 * Since(start);
}

int Main(int argc, char** argv) {
  std::string pandod;
  CLI::App app("Calls with and without events for routers; prints JSON.");
  app.add_option("--pandod", pandod)->required()->check(CLI::ExistingFile);
  CLI11_PARSE(app, argc, argv);

  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  std::string folder = "/tmp/pando-kv-events-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) std::abort();
  nlohmann::json calls = nlohmann::json::array();
  for (const int subscribers : {0, 1, 8}) {
    calls.push_back(MeasureCalls(pandod, absl::StrCat(folder, "/", subscribers),
                                 subscribers));
  }
  std::vector<double> announcement_ms;
  for (int i = 0; i < kAnnouncements; ++i) {
    announcement_ms.push_back(
        Announcement(pandod, absl::StrCat(folder, "/announcement", i)));
  }
  const nlohmann::json result = {
      {"calls", calls},
      {"insert_to_frame_ms", InsertToFrame(pandod, folder)},
      {"announcement_ms", announcement_ms}};
  std::cout << result.dump() << std::endl;
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace pando::bench

int main(int argc, char** argv) { return pando::bench::Main(argc, argv); }
