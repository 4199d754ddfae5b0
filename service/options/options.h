#ifndef PANDO_SERVICE_OPTIONS_OPTIONS_H_
#define PANDO_SERVICE_OPTIONS_OPTIONS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/eviction/eviction_policy.h"
#include "core/eviction/quota_classes.h"
#include "core/requests/block_requests.h"
#include "core/requests/session_limits.h"
#include "gpu/kv_layout.h"
#include "service/security/credential.h"

namespace pando {

// Every option of pandod. service/options/option_table.cc says what each means
// and which values it takes. ParseOptions returns complete and valid ones.
struct Options {
  // If it is not given, CompleteOptions sets it to SocketToServe().
  std::string socket;
  // If it is not given, CompleteOptions sets it to memory.sock beside socket.
  std::string memory_socket;
  // The Unix socket for pando-movers. If it is not given, CompleteOptions sets
  // it to mover.sock beside socket for a pool on GPUs that has tiers. If it
  // stays empty, pandod copies pages itself.
  std::string mover_socket;
  // The mode of the files of socket and memory_socket.
  mode_t socket_mode = 0660;
  // The group of the files of socket and memory_socket, by name or number;
  // empty: the group of the process.
  std::string socket_group;
  // The users whose processes may connect; empty: all that the mode lets in.
  std::vector<uint32_t> allowed_uids;
  // host:port where gRPC is served over TCP; empty: off. Otherwise the three
  // files are given, or tcp_insecure is set.
  std::string tcp;
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_client_ca;
  bool tcp_insecure = false;
  std::string http = "127.0.0.1:9464";
  // Host names that the console answers to, beside IP addresses, localhost and
  // the host of http.
  std::vector<std::string> http_hosts;
  bool console = true;
  bool console_show_tokens = false;

  uint32_t pool_pages = 4096;
  // Bytes of one shard, instead of pool_pages; 0: pool_pages counts.
  uint64_t pool_bytes = 0;
  // A share of the devices' free memory, from which pool_pages is set when the
  // pool is made; 0: pool_pages counts.
  double pool_fraction = 0;
  uint32_t pool_shards = 1;
  // "host" or "cuda".
  std::string pool_memory = "host";
  // The device of each shard; for cuda only.
  std::vector<std::string> pool_devices;
  // A folder whose config.json says layers, heads, head_size and dtype, where
  // these are not given; empty: none.
  std::string model_config;
  uint32_t page_tokens = 16;
  uint32_t layers = 32;
  uint32_t kv_planes = 2;
  uint32_t heads = 8;
  uint32_t head_size = 128;
  DType dtype = DType::kBFloat16;
  LayoutOrder layout_order = LayoutOrder::kLayerFirst;
  // Bytes of a page over all layers, instead of heads and so on; 0: not given.
  uint64_t page_bytes = 0;
  std::string page_format;
  std::string model;

  // Bytes of the block memory; 0: there is none.
  uint64_t memory = 0;
  // The NUMA nodes on which the block memory lies, as "0-1,4"; empty: all.
  std::string memory_nodes;
  // True if `memory` was not given. It is then set when the block memory is
  // made: to the size of the kept memory, or else to a share of the free
  // memory.
  bool chooses_memory = false;
  // False if no option asks for a pool. Then there is block memory, and the
  // smallest pool is made, which no worker may attach.
  bool has_pool = true;
  // True if the first worker that attaches states the layout. `stated` has the
  // names of the layout options that were given nevertheless; the worker must
  // agree with them.
  bool is_open = false;
  std::vector<std::string> stated;
  // The bytes of an extent of the block memory.
  uint64_t block_extent = uint64_t{16} << 20;
  // How long a block may be reserved before it counts as missing.
  absl::Duration block_write_limit = absl::Seconds(30);

  EvictionPolicyKind eviction_policy = EvictionPolicyKind::kLru;
  // Whether the `reuse` policy learns while another policy is in use.
  bool learn_reuse = false;
  // When fewer than low_free_pages are free, evict until high_free_pages are;
  // both 0: off.
  uint32_t low_free_pages = 0;
  uint32_t high_free_pages = 0;
  // The list `quotas` of the YAML file; it has no flag.
  std::vector<QuotaClass> quotas;
  // The list `block_quotas` of the YAML file; it has no flag.
  std::vector<BlockQuota> block_quotas;
  // The list `credentials` of the YAML file; empty: all callers may do
  // everything.
  std::vector<Credential> credentials;

  // How long a session can be resumed after its stream broke.
  absl::Duration session_grace = absl::Seconds(2);
  // How long pages of a lost session stay in quarantine if it is not known
  // whether a writer lives.
  absl::Duration quarantine = absl::Seconds(10);
  // How long a token for the memory socket is valid.
  absl::Duration attach_token_ttl = absl::Seconds(5);
  uint32_t max_tokens_per_request = 1048576;
  uint32_t max_attach_tokens_per_session = 64;
  // Bytes of the arena of each lane; 0: there are no lanes.
  uint32_t lane_bytes = 8 << 20;
  uint32_t max_lanes = 256;
  // How long a lane's ends spin for the next call or answer before they sleep.
  absl::Duration lane_spin = absl::Microseconds(20);
  uint32_t max_calls_per_connection = 1000;
  // Limits of one session; zero: no limit.
  uint32_t max_locks_per_session = 65536;
  uint32_t max_reserved_pages_per_session = 0;
  uint32_t max_block_locks_per_session = 1 << 20;
  uint32_t max_reserved_blocks_per_session = 0;
  uint64_t max_kept_bytes_per_session = uint64_t{256} << 20;
  uint32_t max_calls_per_second = 0;
  // How many events are kept for watchers that come back or are slow.
  uint32_t event_history = 65536;
  // tcp://host:port of the first worker's stream of events for routers; empty:
  // off. Then CompleteKvEvents refuses the other kv_events options, except for
  // kv_events_form.
  std::string kv_events;
  // tcp://host:port for replays of that stream; empty: no replays.
  std::string kv_events_replay;
  std::string kv_events_form = "map";
  std::string kv_events_topic;
  // The names of the workers; each gets a port of its own. Empty: one worker
  // without a name.
  std::vector<std::string> kv_events_workers;
  // The tokens of a block in these events: a multiple of page_tokens; 0 when
  // kv_events is off.
  uint32_t kv_events_block_tokens = 0;
  // Which namespaces are told besides the plain ones: any of "salted" and
  // "bigram".
  std::vector<std::string> kv_events_include;
  // Whether routers are also told what the tiers of this machine have.
  bool kv_events_tiers = false;
  // Where copies of pages are kept: memory and a folder of this pandod, and a
  // folder or servers that many machines share. With 0 or empty there is no
  // such tier. tier_disk and tier_disk_bytes are given together; the key file
  // needs tier_shared or block_tier_shared.
  uint64_t tier_host_bytes = 0;
  std::string tier_disk;
  uint64_t tier_disk_bytes = 0;
  std::vector<std::string> tier_shared;
  std::string tier_shared_key_file;
  uint32_t tier_min_load_tokens = 256;
  // Where copies of blocks are kept. With 0 or empty there is no such tier. The
  // folder and its bytes are given together. tier_shared_key_file signs these
  // blocks, too.
  std::string block_tier_disk;
  uint64_t block_tier_disk_bytes = 0;
  std::vector<std::string> block_tier_shared;
  std::string tier_write = "at-once";
  // Whether descriptors are given to a keeper: "auto" (if there is one) or
  // "no".
  std::string keep = "auto";
  // How long running requests may take to finish once the server drains.
  absl::Duration drain_timeout = absl::Seconds(25);
  // The time between two checks of the invariants; zero: none.
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
BlockOptions BlockOptionsOf(const Options& options);

// The parsed command line.
struct CommandLine {
  Options options;
  // If it is not empty (--help, --version, --check-config), the program prints
  // this and exits with status 0.
  std::string print;
  // The program prints `print` only if CheckStart succeeds on this machine;
  // else it prints that error and exits.
  bool check_start = false;
  // If set, the program prints the catalogue of metrics and exits with status
  // 0.
  bool print_metrics = false;
};

// Reads the options from these sources, each overriding those before it:
// defaults, the YAML file named by --config or PANDO_CONFIG, the environment,
// the flags. `env` has the form of environ. An error names the option, its
// value and the allowed values; for an unknown name it suggests the nearest
// known one.
absl::StatusOr<CommandLine> ParseOptions(int argc, const char* const* argv,
                                         const char* const* env);

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_OPTIONS_H_
