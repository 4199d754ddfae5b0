#ifndef PANDO_REPLAY_OPTIONS_H_
#define PANDO_REPLAY_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "pando/tls.h"

namespace pando::replay {

struct Options {
  std::string trace;
  size_t max_requests = 0;  // 0 for all
  bool use_handles = false;
  bool with_output = false;
  bool tell_ends = false;

  // These say where to replay: in this process, through the program `pandod`,
  // which is started for this, or through a pandod that already runs at
  // `address`.
  bool in_process = false;
  std::string pandod;
  std::string address;
  // The credentials that a pandod at `address` is shown, as in ConnectOptions.
  std::optional<TlsFiles> tls;
  std::string token;

  std::vector<std::string> policies = {"lru"};
  std::vector<uint64_t> pool_tokens = {5'000'000};
  uint32_t page_tokens = 16;

  uint32_t clients = 1;
  // "lane" or "grpc"; empty means a lane if there is one.
  std::string transport;
  absl::Duration timeout = absl::Seconds(30);
  // The program echo_server, which is started for this; if it is empty, no
  // floor is measured.
  std::string echo_server;
  bool same_core = false;
  std::string json;

  // Returns the number of pages of a pool for `tokens` tokens. It has one page
  // more, because the padding page holds no tokens.
  uint64_t PoolPages(uint64_t tokens) const { return tokens / page_tokens + 1; }
};

}  // namespace pando::replay

#endif  // PANDO_REPLAY_OPTIONS_H_
