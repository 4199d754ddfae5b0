// scrape_bench: what the calls of four workers take while /metrics is scraped
// once a second, beside what they take while it is not. Rounds of both are
// interleaved; prints a value for each round.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "bench/load/load.h"
#include "bench/load/scraper.h"
#include "replay/pandod_process.h"

namespace pando::bench {
namespace {

constexpr int kClients = 4;
constexpr int kRounds = 30;
constexpr std::chrono::seconds kRoundTime{1};

// One value for each round.
struct Rounds {
  std::vector<double> alone_p99_us;
  std::vector<double> scraped_p99_us;
  std::vector<double> scrape_ms;
};

Rounds Measure(Load& load, int port) {
  using Clock = std::chrono::steady_clock;
  Rounds rounds;
  for (int round = 0; round <= kRounds; ++round) {
    double scrape_ms = 0;
    const double alone = P99(load.Run(kRoundTime, [] {}));
    const double scraped = P99(load.Run(kRoundTime, [&] {
      const Clock::time_point start = Clock::now();
      Scrape(port);
      scrape_ms =
          std::chrono::duration<double, std::milli>(Clock::now() - start)
              .count();
    }));
    if (round == 0) continue;  // warms up
    rounds.alone_p99_us.push_back(alone);
    rounds.scraped_p99_us.push_back(scraped);
    rounds.scrape_ms.push_back(scrape_ms);
  }
  return rounds;
}

// Quota classes that limit nothing: with all of them there are the most series.
void WriteConfig(const std::string& path) {
  nlohmann::json quotas = nlohmann::json::array();
  for (int i = 0; i < kClasses; ++i) {
    quotas.push_back({{"class", ClassName(i)}, {"extra_key", ClassName(i)}});
  }
  std::ofstream(path) << nlohmann::json({{"quotas", quotas}});
}

int Main(int argc, char** argv) {
  std::string pandod;
  CLI::App app("Calls with and without scrapes of /metrics; prints JSON.");
  app.add_option("--pandod", pandod)->required()->check(CLI::ExistingFile);
  CLI11_PARSE(app, argc, argv);

  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  std::string folder = "/tmp/pando-scrape-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) std::abort();
  const std::string socket = folder + "/pando.sock";
  const std::string config = folder + "/pando.yaml";
  WriteConfig(config);
  const int port = FreePort();
  const auto process = PandodProcess::Start(
      pandod, socket,
      {"--http", absl::StrCat("127.0.0.1:", port), "--config", config,
       "--pool-pages", absl::StrCat(kPoolPages), "--page-tokens",
       absl::StrCat(kPageTokens), "--layers", "1", "--heads", "1",
       "--head-size", "1", "--log-level", "error"});
  if (!process.ok()) {
    std::cerr << process.status() << "\n";
    return 1;
  }

  Load load("unix:" + socket, kClients);
  const Rounds rounds = Measure(load, port);
  const nlohmann::json result = {{"series", CountSeries(Scrape(port))},
                                 {"scrape_ms", rounds.scrape_ms},
                                 {"alone_p99_us", rounds.alone_p99_us},
                                 {"scraped_p99_us", rounds.scraped_p99_us}};
  std::cout << result.dump() << std::endl;
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace pando::bench

int main(int argc, char** argv) { return pando::bench::Main(argc, argv); }
