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
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "bench/kv_events/calls.h"
#include "bench/kv_events/machine.h"
#include "bench/kv_events/subscriber.h"
#include "bench/load/load.h"

namespace pando::bench {
namespace {

using Clock = std::chrono::steady_clock;

// kFlood makes as many requests as it can; the other as many as one engine may
// send.
const WorkerLoad kFlood = {.name = "flood", .clients = 4, .period = {}};
const WorkerLoad kEngine = {
    .name = "engine", .clients = 1, .period = std::chrono::milliseconds(5)};
constexpr uint32_t kPromptTokens = 1024;
constexpr uint32_t kPromptPages = kPromptTokens / kPageTokens;
constexpr int kTimedInserts = 1000;
constexpr uint32_t kAnnouncedBlocks = 20'000;
constexpr int kAnnouncements = 5;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
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

// The time from before the call to its frame. Nothing is evicted, so that each
// request makes one frame.
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

// The time from the subscription to the last block. Each pandod is asked once,
// because there is at most one announcement a second.
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
  for (const WorkerLoad& load : {kFlood, kEngine}) {
    for (const int subscribers : {0, 1, 8}) {
      calls.push_back(MeasureCalls(
          pandod, absl::StrCat(folder, "/", load.name, subscribers), load,
          subscribers));
    }
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
