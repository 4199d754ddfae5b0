// rpc_bench: MatchPrefix of a cached prompt beside an echo of the same message
// sizes, over Unix sockets, all on one CPU. Rounds of both are interleaved; the
// figure is the ratio of the medians over the rounds.

#include <grpcpp/grpcpp.h>
#include <sched.h>

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

// Runs on the first CPU; what this process starts does, too.
void PinToOneCpu() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) std::abort();
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

// Caches `tokens` tokens, all of them this value.
void Cache(const std::string& socket, uint32_t tokens) {
  const std::vector<uint32_t> prompt(tokens, tokens);
  absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect({.address = "unix:" + socket, .name = "rpc_bench"});
  if (!client.ok()) std::abort();
  absl::StatusOr<Match> match =
      (*client)->MatchPrefix(prompt, {.lock = true, .reserve_tokens = tokens});
  if (!match.ok()) std::abort();
  if (!(*client)
           ->Insert(prompt, match->reserved.ids,
                    {.lock = &match->lock, .lock_action = LockAction::kUnlock})
           .ok()) {
    std::abort();
  }
}

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
  PinToOneCpu();
  std::string folder = "/tmp/pando-rpc-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) std::abort();
  const std::string cache_socket = folder + "/pando.sock";
  const std::string echo_socket = folder + "/echo.sock";
  auto cache_process = PandodProcess::Start(
      pandod, cache_socket,
      {"--http", "", "--page-tokens", absl::StrCat(kPageTokens), "--layers",
       "1", "--heads", "1", "--head-size", "1", "--log-level", "error"});
  auto echo_process = PandodProcess::Start(
      echo_server, echo_socket, {"--page-tokens", absl::StrCat(kPageTokens)});
  if (!cache_process.ok() || !echo_process.ok()) {
    std::cerr << cache_process.status() << echo_process.status() << "\n";
    return 1;
  }

  Target cache(cache_socket);
  Target echo(echo_socket);
  nlohmann::json matches = nlohmann::json::array();
  for (const uint32_t tokens : {64u, 1024u, 8192u}) {
    Cache(cache_socket, tokens);
    const v1::MatchPrefixRequest request = MatchOf(tokens);
    std::vector<double> match_us;
    std::vector<double> echo_us;
    for (int round = 0; round <= kRounds; ++round) {
      const double floor = Round([&] { echo.Match(request); });
      const double match = Round([&] { cache.Match(request); });
      if (round == 0) continue;  // warms up
      echo_us.push_back(floor);
      match_us.push_back(match);
    }
    matches.push_back({{"tokens", tokens},
                       {"match_us", Median(match_us)},
                       {"echo_us", Median(echo_us)}});
  }
  const nlohmann::json result = {{"matches", matches}};
  std::cout << result.dump() << std::endl;
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace pando

int main(int argc, char** argv) { return pando::Main(argc, argv); }
