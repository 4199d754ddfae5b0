// tier_calls_bench: what the calls of workers take while a tier stores what a
// client computes and loads what it reads, beside the same calls without a
// tier, and without one while this process writes and reads as many bytes.
// Rounds of all are interleaved; prints a value for each round.

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "bench/load/load.h"
#include "bench/load/scraper.h"
#include "pando/client.h"
#include "replay/pandod_process.h"

namespace pando::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 20;
constexpr std::chrono::seconds kRoundTime{1};
// The time to store what a round left behind.
constexpr std::chrono::milliseconds kRest{200};
// 200 requests a second together.
constexpr int kClients = 4;
constexpr std::chrono::milliseconds kPeriod{20};

// So many that the cache has evicted each before it is read again.
constexpr uint32_t kDocuments = 128;
constexpr uint32_t kDocumentTokens = 1024;
constexpr uint32_t kDocumentPages = kDocumentTokens / kPageTokens;
constexpr size_t kPageBytes = 64 * 1024;
constexpr std::chrono::milliseconds kReadPeriod{50};

template <typename T>
T OrExit(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  std::cerr << result.status() << "\n";
  std::exit(1);
}

// A pandod with or without a tier, which has its sockets in `folder`.
class Machine {
 public:
  Machine(const std::string& pandod, const std::string& folder,
          std::vector<std::string> more)
      : address_(absl::StrCat("unix:", folder, "/pando.sock")),
        http_port_(FreePort()),
        process_(OrExit(PandodProcess::Start(pandod, folder + "/pando.sock",
                                             Flags(std::move(more))))) {}

  const std::string& address() const { return address_; }
  // Pages that were copied to the tier, or back.
  double CopiedPages(const std::string& direction) const {
    const std::string metrics = Scrape(http_port_);
    const std::string name =
        absl::StrCat("pando_tier_copied_pages_total{tier=\"disk\",direction=\"",
                     direction, "\"} ");
    const size_t begin = metrics.find(name) + name.size();
    double value = 0;
    if (!absl::SimpleAtod(
            metrics.substr(begin, metrics.find('\n', begin) - begin), &value)) {
      std::cerr << "there is no " << name << "\n";
      std::exit(1);
    }
    return value;
  }

 private:
  std::vector<std::string> Flags(std::vector<std::string> flags) const {
    for (const std::string& flag : std::initializer_list<std::string>{
             "--http", absl::StrCat("127.0.0.1:", http_port_), "--model", "m",
             "--pool-pages", absl::StrCat(kPoolPages), "--page-tokens",
             absl::StrCat(kPageTokens), "--page-bytes",
             absl::StrCat(kPageBytes), "--log-level", "error"}) {
      flags.push_back(flag);
    }
    return flags;
  }

  const std::string address_;
  const int http_port_;
  const PandodProcess process_;
};

// A client that reads documents in turn, which are loaded where there is a
// tier, and computes as many new ones.
class Reader {
 public:
  explicit Reader(const std::string& address)
      : client_(
            OrExit(Client::Connect({.address = address, .name = "reader"}))) {
    for (uint32_t i = 0; i < kDocuments; ++i) Serve(i);
  }

  // After each document and each new one it calls `then`.
  void ReadFor(Clock::duration time, const std::function<void()>& then) {
    const Clock::time_point end = Clock::now() + time;
    for (Clock::time_point next = Clock::now(); next < end;
         next += kReadPeriod) {
      std::this_thread::sleep_until(next);
      Serve(read_++ % kDocuments);
      Serve(kDocuments + read_);
      then();
    }
  }

 private:
  void Serve(uint32_t document) {
    const std::vector<Token> tokens(kDocumentTokens, 1'000'000 + document);
    Match match = OrExit(
        client_->MatchPrefix(tokens, {.lock = true,
                                      .reserve_tokens = kDocumentTokens,
                                      .pending_wait = absl::Seconds(1)}));
    OrExit(client_->Insert(
        {}, match.reserved.ids,
        {.lock = &match.lock,
         .lock_action = LockAction::kUnlock,
         .prompt_tokens = kDocumentTokens - match.matched_tokens}));
  }

  const std::unique_ptr<Client> client_;
  uint32_t read_ = 0;
};

// A file of one document. Owned by Measure; used by one thread at a time.
class PlainDisk {
 public:
  explicit PlainDisk(const std::string& path)
      : file_(open(path.c_str(), O_RDWR | O_CREAT | O_DIRECT, 0600)),
        block_(static_cast<char*>(std::aligned_alloc(4096, kPageBytes))) {
    std::memset(block_, 1, kPageBytes);
    Write();
  }
  ~PlainDisk() {
    close(file_);
    std::free(block_);
  }
  PlainDisk(const PlainDisk&) = delete;
  PlainDisk& operator=(const PlainDisk&) = delete;

  void Write() {
    Each([&](off_t at) { return pwrite(file_, block_, kPageBytes, at); });
  }
  void Read() {
    Each([&](off_t at) { return pread(file_, block_, kPageBytes, at); });
  }

 private:
  template <typename Call>
  void Each(Call&& call) {
    for (size_t page = 0; page < kDocumentPages; ++page) {
      if (call(static_cast<off_t>(page * kPageBytes)) == kPageBytes) continue;
      std::cerr << "the disk refuses " << kPageBytes << " bytes\n";
      std::exit(1);
    }
  }

  const int file_;
  char* const block_;
};

// The workers and the reader of a machine.
class Side {
 public:
  explicit Side(const Machine& machine)
      : load_(machine.address(), kClients, kPeriod),
        reader_(machine.address()) {}

  // The p99 of the workers' calls, in microseconds.
  double Round(const std::function<void()>& then = [] {}) {
    const double p99 =
        P99(load_.Run(kRoundTime, [&] { reader_.ReadFor(kRoundTime, then); }));
    std::this_thread::sleep_for(kRest);
    return p99;
  }

 private:
  Load load_;
  Reader reader_;
};

nlohmann::json Measure(const std::string& pandod, const std::string& folder) {
  std::filesystem::create_directory(folder + "/plain");
  std::filesystem::create_directory(folder + "/tiered");
  const Machine plain(pandod, folder + "/plain", {});
  const Machine tiered(
      pandod, folder + "/tiered",
      {"--tier-disk", folder + "/tier", "--tier-disk-bytes", "4GiB"});
  Side without(plain), with(tiered);
  PlainDisk disk(folder + "/plain/disk");
  without.Round();  // warms up
  with.Round();
  const double stored = tiered.CopiedPages("store");
  const double loaded = tiered.CopiedPages("load");
  std::vector<double> off_us, on_us, plain_us;
  for (int round = 0; round < kRounds; ++round) {
    off_us.push_back(without.Round());
    on_us.push_back(with.Round());
    plain_us.push_back(without.Round([&] {
      disk.Read();
      disk.Write();
    }));
  }
  const double seconds =
      kRounds * std::chrono::duration<double>(kRoundTime).count();
  return {{"off_p99_us", off_us},
          {"on_p99_us", on_us},
          {"plain_p99_us", plain_us},
          {"stored_per_s", (tiered.CopiedPages("store") - stored) / seconds},
          {"loaded_per_s", (tiered.CopiedPages("load") - loaded) / seconds}};
}

int Main(int argc, char** argv) {
  std::string pandod, folder;
  CLI::App app("Calls beside a busy tier and without one; prints JSON.");
  app.add_option("--pandod", pandod)->required()->check(CLI::ExistingFile);
  app.add_option("--folder", folder, "On the disk of the tier")
      ->required()
      ->check(CLI::ExistingDirectory);
  CLI11_PARSE(app, argc, argv);
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  std::cout << Measure(pandod, folder).dump() << std::endl;
  return 0;
}

}  // namespace
}  // namespace pando::bench

int main(int argc, char** argv) { return pando::bench::Main(argc, argv); }
