// The floor of MatchPrefix and Insert: the same server code, the same message
// sizes, and handlers that look at nothing. MatchPrefix answers with one page
// id for every `--page-tokens` tokens of the request.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <string>

#include "absl/synchronization/mutex.h"
#include "pando/v1/prefix_cache.grpc.pb.h"
#include "service/calls/call_policy.h"
#include "service/calls/method_metrics.h"
#include "service/rpc/async_service.h"
#include "service/rpc/rpc_server.h"
#include "service/rpc/unary_call.h"

namespace pando {
namespace {

int Main(int argc, char** argv) {
  std::string socket;
  uint32_t page_tokens = 16;
  CLI::App app("Answers MatchPrefix and Insert without a cache.");
  app.add_option("--socket", socket, "Unix socket to listen on")->required();
  app.add_option("--page-tokens", page_tokens, "Tokens for each page id");
  CLI11_PARSE(app, argc, argv);

  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  RpcMetrics metrics;
  AsyncService<v1::PrefixCache> grpc;
  CallPolicy policy;
  RpcServer server(&policy);
  server.AddService(&grpc);
  const std::string service = v1::PrefixCache::service_full_name();
  ServeMethod(
      server, grpc, metrics,
      MakeMethod<v1::MatchPrefixRequest, v1::MatchPrefixResponse>(
          service, "MatchPrefix", [page_tokens](const auto& in, auto& out) {
            const int tokens = in.tokens_size();
            out.set_matched_tokens(static_cast<uint32_t>(tokens));
            out.mutable_page_ids()->Resize(
                tokens / static_cast<int>(page_tokens), 1);
            return absl::OkStatus();
          }));
  ServeMethod(server, grpc, metrics,
              MakeMethod<v1::InsertRequest, v1::InsertResponse>(
                  service, "Insert",
                  [](const auto&, auto&) { return absl::OkStatus(); }));
  const absl::Status started =
      server.Start({.socket = {socket}, .max_receive_bytes = 64 << 20});
  if (!started.ok()) {
    std::cerr << started << std::endl;
    return 1;
  }
  pause();  // until it is killed
  return 0;
}

}  // namespace
}  // namespace pando

int main(int argc, char** argv) { return pando::Main(argc, argv); }
