#ifndef PANDO_SERVICE_OPTIONS_OPTIONS_H_
#define PANDO_SERVICE_OPTIONS_OPTIONS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/eviction_policy.h"
#include "core/quota_classes.h"
#include "core/session_limits.h"
#include "gpu/kv_layout.h"
#include "service/security/credential.h"

namespace pando {

// Every option of pandod; service/option_table.cc says what each means and
// which values it takes. As ParseOptions returns it, it is complete and valid.
struct Options {
  std::string socket = "/run/pando/pando.sock";
  // Empty: memory.sock beside socket.
  std::string memory_socket;
  // Of both socket files.
  mode_t socket_mode = 0660;
  // Name or number; empty: the group of the process.
  std::string socket_group;
  // Whose processes may connect to them; empty: whoever the mode lets in.
  std::vector<uint32_t> allowed_uids;
  // host:port; empty: off. With certificates on both sides, whose files are
  // named here, or without any.
  std::string tcp;
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_client_ca;
  bool tcp_insecure = false;
  std::string http = "127.0.0.1:9464";
  // Names that the console may be asked by, beside IP addresses, localhost and
  // the host of http.
  std::vector<std::string> http_hosts;
  bool console = true;
  bool console_show_tokens = false;

  uint32_t pool_pages = 4096;
  // Bytes of one shard, instead of pool_pages; 0: pool_pages says it.
  uint64_t pool_bytes = 0;
  // Of the devices' free memory, instead of pool_pages, which is then set when
  // the pool is made; 0: pool_pages says it.
  double pool_fraction = 0;
  uint32_t pool_shards = 1;
  // host or cuda.
  std::string pool_memory = "host";
  // Of each shard, for cuda alone.
  std::vector<std::string> pool_devices;
  bool pool_zero = false;
  uint32_t page_tokens = 16;
  uint32_t layers = 32;
  uint32_t kv_planes = 2;
  uint32_t heads = 8;
  uint32_t head_size = 128;
  DType dtype = DType::kBFloat16;
  LayoutOrder layout_order = LayoutOrder::kLayerFirst;
  // Of a page over all layers, instead of what is said of heads; 0: not given.
  uint64_t page_bytes = 0;
  std::string page_format;
  std::string model;

  EvictionPolicyKind eviction_policy = EvictionPolicyKind::kLru;
  // Evict when less pages are free than the first, until there are as many as
  // the second; both 0: off.
  uint32_t low_free_pages = 0;
  uint32_t high_free_pages = 0;
  // From the list under quotas in the YAML file alone.
  std::vector<QuotaClass> quotas;
  // Likewise under credentials; empty: everybody may do everything.
  std::vector<Credential> credentials;

  absl::Duration session_grace = absl::Seconds(2);
  absl::Duration quarantine = absl::Seconds(10);
  absl::Duration attach_token_ttl = absl::Seconds(5);
  uint32_t max_tokens_per_request = 1048576;
  uint32_t max_attach_tokens_per_session = 64;
  // Of the memory of each lane; 0: there are no lanes.
  uint32_t lane_bytes = 8 << 20;
  uint32_t max_lanes = 256;
  absl::Duration lane_spin = absl::Microseconds(20);
  uint32_t max_calls_per_connection = 10000;
  // Of these, zero: no limit.
  uint32_t max_locks_per_session = 65536;
  uint32_t max_reserved_pages_per_session = 0;
  uint32_t max_held_tokens_per_session = 16777216;  // 64 MiB
  uint32_t max_calls_per_second = 0;                // of a session
  // Events kept for watchers that come back or are slow.
  uint32_t event_history = 65536;
  // tcp://host:port of the first worker's stream of events for routers; empty:
  // off, and the others have no effect.
  std::string kv_events;
  // Likewise of its replays; empty: none.
  std::string kv_events_replay;
  std::string kv_events_form = "map";
  std::string kv_events_topic;
  // Each has a port of its own; empty: one worker without a name.
  std::vector<std::string> kv_events_workers;
  // A multiple of page_tokens; 0 while there are no events.
  uint32_t kv_events_block_tokens = 0;
  // Of salted and bigram.
  std::vector<std::string> kv_events_include;
  absl::Duration drain_timeout = absl::Seconds(25);
  // Zero: never.
  absl::Duration check_invariants_every = absl::ZeroDuration();
  // The share of the pages whose checksums are verified.
  double verify_pages = 0;

  std::string log_level = "info";
  std::string log_format = "auto";
  // Calls whose handlers take longer are logged; zero: none.
  absl::Duration slow_call = absl::Milliseconds(50);
};

KvShape ShapeOf(const Options& options);
SessionLimits SessionLimitsOf(const Options& options);

// What the command line asks for.
struct CommandLine {
  Options options;
  // Not empty (--help, --version, --check-config): print it and end with
  // status 0.
  std::string print;
  // Print the catalogue of metrics, and end so.
  bool print_metrics = false;
};

// Reads the options from, each overriding the one before: defaults, the YAML
// file named by --config or PANDO_CONFIG, the environment, the flags. env is a
// list as environ is. An error names the option, its value and what it may be;
// an unknown name is an error that suggests the nearest known one.
absl::StatusOr<CommandLine> ParseOptions(int argc, const char* const* argv,
                                         const char* const* env);

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_OPTIONS_H_
