#include "bench/kv_events/calls.h"

#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/kv_events/machine.h"
#include "bench/kv_events/plain_sender.h"
#include "bench/kv_events/subscriber.h"
#include "bench/load/load.h"
#include "bench/load/scraper.h"

namespace pando::bench {
namespace {

constexpr int kRounds = 16;
constexpr std::chrono::milliseconds kRoundTime{500};
constexpr double kRoundSeconds =
    std::chrono::duration<double>(kRoundTime).count();
// The time to read what a round left behind.
constexpr std::chrono::milliseconds kRest{50};

using Readers = std::vector<std::unique_ptr<Reader>>;

Readers Read(const std::string& endpoint, int count) {
  Readers readers;
  for (int i = 0; i < count; ++i) {
    readers.push_back(std::make_unique<Reader>(endpoint));
  }
  return readers;
}

// How many bytes each reader has read so far; all read the same.
size_t BytesOf(const Readers& readers) {
  return readers.empty() ? 0 : readers.front()->bytes();
}

// Runs one round and returns its p99, in microseconds.
double Round(Load& load) {
  const double p99 = P99(load.Run(kRoundTime, [] {}));
  std::this_thread::sleep_for(kRest);
  return p99;
}

}  // namespace

nlohmann::json MeasureCalls(const std::string& pandod,
                            const std::string& folder, const WorkerLoad& load,
                            int subscribers) {
  Machine quiet(pandod, folder + "/quiet", kPoolPages, false);
  Machine publishing(pandod, folder + "/publishing", kPoolPages, true);
  const std::string plain = absl::StrCat("tcp://127.0.0.1:", FreePort());
  PlainSender sender(plain);
  Load quiet_load(quiet.address(), load.clients, load.period);
  Load publishing_load(publishing.address(), load.clients, load.period);
  const Readers plain_readers = Read(plain, subscribers);
  const Readers readers = Read(publishing.endpoint(), subscribers);
  // Fills the pools.
  quiet_load.Run(std::chrono::seconds(1), [] {});
  publishing_load.Run(std::chrono::seconds(1), [] {});

  std::vector<double> off_us, on_us, plain_us;
  double blocks = 0, publishing_seconds = 0;
  for (int round = 0; round < kRounds; ++round) {
    off_us.push_back(Round(quiet_load));
    const double evicted_before = publishing.EvictedPages();
    const double seconds_before = publishing.PublishingSeconds();
    const size_t bytes_before = BytesOf(readers);
    on_us.push_back(Round(publishing_load));
    blocks += 2 * (publishing.EvictedPages() - evicted_before);
    publishing_seconds += publishing.PublishingSeconds() - seconds_before;
    if (readers.empty()) continue;
    sender.SetRate((BytesOf(readers) - bytes_before) / kRoundSeconds);
    plain_us.push_back(Round(quiet_load));
    sender.SetRate(0);
  }
  return {
      {"load", load.name},        {"subscribers", subscribers},
      {"off_p99_us", off_us},     {"on_p99_us", on_us},
      {"plain_p99_us", plain_us}, {"seconds", kRounds * kRoundSeconds},
      {"blocks", blocks},         {"publishing_seconds", publishing_seconds}};
}

}  // namespace pando::bench
