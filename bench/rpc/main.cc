// rpc_bench: MatchPrefix of a cached prompt, over a Unix socket and on a lane,
// beside an echo of the same message sizes over a Unix socket, all on one CPU;
// and on a lane with a CPU for each side. Rounds of all are interleaved; the
// figures are medians over the rounds.

#include <grpcpp/grpcpp.h>
#include <sched.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "pando/client.h"
#include "pando/v1/prefix_cache.grpc.pb.h"
#include "replay/pandod_process.h"

namespace pando {
namespace {

constexpr uint32_t kPageTokens = 16;
constexpr int kRounds = 40;
constexpr std::chrono::milliseconds kRoundTime{75};

// Pins this process, and what it starts from now on, to this CPU. Returns false
// if there is no such CPU.
bool PinTo(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  return sched_setaffinity(0, sizeof one, &one) == 0;
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A server to call MatchPrefix on, by the bare stub: the client library's own
// cost is no part of the ratio.
class Target {
 public:
  explicit Target(const std::string& socket)
      : stub_(v1::PrefixCache::NewStub(grpc::CreateCustomChannel(
            "unix:" + socket, grpc::InsecureChannelCredentials(),
            ChannelArguments()))) {}

  void Match(const v1::MatchPrefixRequest& request) {
    grpc::ClientContext context;
    Expect(stub_->MatchPrefix(&context, request, &match_));
    if (match_.matched_tokens() !=
        static_cast<uint32_t>(request.tokens_size())) {
      std::cerr << "the prompt is not cached whole\n";
      std::exit(1);
    }
  }

 private:
  static void Expect(const grpc::Status& status) {
    if (status.ok()) return;
    std::cerr << status.error_message() << "\n";
    std::exit(1);
  }

  static grpc::ChannelArguments ChannelArguments() {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return arguments;
  }

  const std::unique_ptr<v1::PrefixCache::Stub> stub_;
  v1::MatchPrefixResponse match_;
};

// The median time of `call` over one round, in microseconds.
template <typename Call>
double Round(Call&& call) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  const Clock::time_point end = Clock::now() + kRoundTime;
  for (Clock::time_point start = Clock::now(); start < end;) {
    call();
    const Clock::time_point now = Clock::now();
    times.push_back(
        std::chrono::duration<double, std::micro>(now - start).count());
    start = now;
  }
  return Median(std::move(times));
}

v1::MatchPrefixRequest MatchOf(uint32_t tokens) {
  v1::MatchPrefixRequest request;
  request.mutable_tokens()->Resize(static_cast<int>(tokens), tokens);
  return request;
}

// A worker with a lane.
class LaneTarget {
 public:
  explicit LaneTarget(const std::string& socket) {
    auto client =
        Client::Connect({.address = "unix:" + socket, .name = "rpc_bench"});
    if (!client.ok() || (*client)->transport() != Transport::kLane) {
      std::cerr << "there is no lane\n";
      std::exit(1);
    }
    client_ = *std::move(client);
  }

  // Caches a prompt.
  void Cache(const std::vector<uint32_t>& prompt) {
    auto match = client_->MatchPrefix(
        prompt,
        {.lock = true, .reserve_tokens = static_cast<uint32_t>(prompt.size())});
    if (!match.ok()) std::abort();
    if (!client_
             ->Insert(
                 prompt, match->reserved.ids,
                 {.lock = &match->lock, .lock_action = LockAction::kUnlock})
             .ok()) {
      std::abort();
    }
  }

  void Match(const std::vector<uint32_t>& prompt) {
    const auto match = client_->MatchPrefix(prompt);
    if (!match.ok() || match->matched_tokens != prompt.size()) std::abort();
  }

  // A match that answers without page ids.
  void Score(const std::vector<uint32_t>& prompt) {
    const PrefixQuery query = {.tokens = prompt};
    const auto scores = client_->MatchPrefixes({&query, 1});
    if (!scores.ok() || scores->front().matched_tokens != prompt.size()) {
      std::abort();
    }
  }

 private:
  std::unique_ptr<Client> client_;
};

int Main(int argc, char** argv) {
  std::string pandod;
  std::string echo_server;
  CLI::App app("MatchPrefix beside an echo of the same sizes; prints JSON.");
  app.add_option("--pandod", pandod)->required()->check(CLI::ExistingFile);
  app.add_option("--echo-server", echo_server)
      ->required()
      ->check(CLI::ExistingFile);
  CLI11_PARSE(app, argc, argv);

  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  PinTo(0);
  std::string folder = "/tmp/pando-rpc-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) std::abort();
  const std::string cache_socket = folder + "/pando.sock";
  // Each pandod has its memory socket beside its own.
  if (mkdir((folder + "/far").c_str(), 0700) != 0) std::abort();
  const std::string far_socket = folder + "/far/pando.sock";
  const std::string echo_socket = folder + "/echo.sock";
  std::vector<std::string> flags = {
      "--http",      "",  "--page-tokens", absl::StrCat(kPageTokens),
      "--layers",    "1", "--heads",       "1",
      "--head-size", "1", "--log-level",   "error"};
  auto cache_process = PandodProcess::Start(pandod, cache_socket, flags);
  auto echo_process = PandodProcess::Start(
      echo_server, echo_socket, {"--page-tokens", absl::StrCat(kPageTokens)});
  if (!cache_process.ok() || !echo_process.ok()) {
    std::cerr << cache_process.status() << echo_process.status() << "\n";
    return 1;
  }
  // This pandod has a CPU of its own, and stays awake between two calls.
  const bool has_two_cpus = PinTo(1);
  flags.insert(flags.end(), {"--lane-spin", "1ms"});
  auto far_process = PandodProcess::Start(pandod, far_socket, flags);
  PinTo(0);
  if (!far_process.ok()) {
    std::cerr << far_process.status() << "\n";
    return 1;
  }

  Target cache(cache_socket);
  Target echo(echo_socket);
  LaneTarget lane(cache_socket);
  LaneTarget far(far_socket);
  nlohmann::json matches = nlohmann::json::array();
  for (const uint32_t tokens : {64u, 1024u, 8192u}) {
    const std::vector<uint32_t> prompt(tokens, tokens);
    lane.Cache(prompt);
    far.Cache(prompt);
    const v1::MatchPrefixRequest request = MatchOf(tokens);
    std::vector<double> echo_us, match_us, lane_us, score_us, far_us;
    for (int round = 0; round <= kRounds; ++round) {
      const double floor = Round([&] { echo.Match(request); });
      const double match = Round([&] { cache.Match(request); });
      const double near = Round([&] { lane.Match(prompt); });
      const double score = Round([&] { lane.Score(prompt); });
      const double away = has_two_cpus ? Round([&] { far.Match(prompt); }) : 0;
      if (round == 0) continue;  // warms up
      echo_us.push_back(floor);
      match_us.push_back(match);
      lane_us.push_back(near);
      score_us.push_back(score);
      far_us.push_back(away);
    }
    matches.push_back({{"tokens", tokens},
                       {"match_us", Median(match_us)},
                       {"echo_us", Median(echo_us)},
                       {"lane_us", Median(lane_us)},
                       {"lane_score_us", Median(score_us)},
                       {"far_lane_us", Median(far_us)}});
  }
  const nlohmann::json result = {{"matches", matches}};
  std::cout << result.dump() << std::endl;
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace pando

int main(int argc, char** argv) { return pando::Main(argc, argv); }
