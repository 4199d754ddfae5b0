#include "service/options/option_table.h"

#include <cstdint>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "gpu/kv_pool.h"
#include "service/options/option_kinds.h"

namespace pando {
namespace {

using option::Bytes;
using option::Choice;
using option::Fraction;
using option::List;
using option::Live;
using option::Mode;
using option::Named;
using option::Number;
using option::Numbers;
using option::Switch;
using option::Text;
using option::Time;

constexpr uint32_t kMaxUint32 = std::numeric_limits<uint32_t>::max();
constexpr uint32_t kMaxInt32 = std::numeric_limits<int32_t>::max();
constexpr uint32_t kMaxTokensPerRequest = 16 * 1024 * 1024;
constexpr uint32_t kMaxLaneBytes = uint32_t{1} << 30;

std::vector<OptionSpec> MakeOptionTable() {
  const absl::Duration zero = absl::ZeroDuration();
  const absl::Duration hour = absl::Hours(1);
  return {
      Text("socket", &Options::socket, "PATH",
           "Unix socket that gRPC is served on; if empty, pando.sock in "
           "/run/pando where pandod may write to that folder or make it, else "
           "in "
           "$XDG_RUNTIME_DIR/pando, else in /tmp/pando-UID"),
      Text("memory-socket", &Options::memory_socket, "PATH",
           "Unix socket that hands out the pool's memory; if empty, "
           "memory.sock beside socket"),
      Text(
          "mover-socket", &Options::mover_socket, "PATH",
          "Unix socket for pando-movers, which copy pages between the pool and "
          "tiers; if empty, mover.sock beside socket for a pool on GPUs that "
          "has tiers, else pandod copies itself"),
      Mode("socket-mode", &Options::socket_mode,
           "Permissions of both socket files"),
      Text("socket-group", &Options::socket_group, "GROUP",
           "Group of both socket files, by name or number; if empty, that of "
           "the process"),
      Numbers(
          "allowed-uids", &Options::allowed_uids,
          "Users whose processes may connect to the sockets, beside pandod's "
          "own, separated by commas; if empty, all whom the permissions let "
          "in"),
      Text("tcp", &Options::tcp, "HOST:PORT",
           "Address that gRPC is also served on; off when empty"),
      Text("tls-certificate", &Options::tls_certificate, "PATH",
           "Certificate of pandod over TCP, with its chain, PEM"),
      Text("tls-key", &Options::tls_key, "PATH",
           "Private key of that certificate, PEM"),
      Text("tls-client-ca", &Options::tls_client_ca, "PATH",
           "Certificates of the authorities that sign clients' certificates, "
           "PEM"),
      Switch("tcp-insecure", &Options::tcp_insecure,
             "Serve TCP without encryption, to all who reach it"),
      Text("http", &Options::http, "HOST:PORT",
           "Address of /metrics, /healthz, /readyz and /console; off when "
           "empty"),
      List("http-hosts", &Options::http_hosts, "LIST",
           "Host names that the console answers to, separated by commas, "
           "beside IP addresses, localhost and the host of http"),
      Switch("console", &Options::console,
             "Serve the console, a page that shows the cache"),
      Switch("console-show-tokens", &Options::console_show_tokens,
             "Let the console show the tokens of nodes, to all who reach it"),
      Number("pool-pages", &Options::pool_pages, 2, kMaxUint32,
             "Pages of the pool, the padding page included"),
      Bytes("pool-bytes", &Options::pool_bytes,
            "Size of the pool on one shard, instead of pool-pages. Without "
            "layers, heads, head-size, dtype, page-bytes and model-config the "
            "pool is open: the first engine that attaches says its layout"),
      Fraction("pool-fraction", &Options::pool_fraction,
               "Size of the pool as a share of the GPUs' free memory, instead "
               "of pool-pages; 0 for none"),
      Number("pool-shards", &Options::pool_shards, 1, KvPool::kMaxShards,
             "Shards of the pool: the tensor-parallel ranks that share it"),
      Choice("pool-memory", &Options::pool_memory, {"host", "cuda"},
             "Where the pool is: shared host memory, or GPUs"),
      List("pool-devices", &Options::pool_devices, "LIST",
           "GPU of each shard, by ordinal or UUID, separated by commas; if "
           "empty, 0, 1 and so on"),
      Text("model-config", &Options::model_config, "FOLDER",
           "Folder of a model whose config.json says layers, heads, head-size "
           "and dtype, where these are not given"),
      Number("page-tokens", &Options::page_tokens, 1, kMaxUint32,
             "Tokens of a page"),
      Number("layers", &Options::layers, 1, kMaxUint32, "Layers of the model"),
      Number("kv-planes", &Options::kv_planes, 1, 2,
             "2: keys and values; 1: one latent vector (MLA)"),
      Number("heads", &Options::heads, 1, kMaxUint32, "KV heads of one shard"),
      Number("head-size", &Options::head_size, 1, kMaxUint32,
             "Elements of a head"),
      Named("dtype", &Options::dtype, DType::kFloat8E5M2, ParseDType, DTypeName,
            "Element type of the KV"),
      Named("layout-order", &Options::layout_order, LayoutOrder::kPageFirst,
            ParseLayoutOrder, LayoutOrderName,
            "What is contiguous in memory: a layer, or a page"),
      Bytes("page-bytes", &Options::page_bytes,
            "Bytes of a page over all layers, when only the workers know its "
            "contents; instead of kv-planes, heads, head-size and dtype"),
      Text("page-format", &Options::page_format, "TEXT",
           "Text that all workers must state alike, such as the contents of "
           "opaque pages"),
      Text("model", &Options::model, "NAME",
           "Model that the KV belongs to; a worker that names another is "
           "refused"),
      Bytes(
          "memory", &Options::memory,
          "Size of the block memory, which engines on all GPUs of the machine "
          "share. When not given: off where options ask for a pool, else a "
          "quarter of the free memory, and there is no pool"),
      Text("memory-nodes", &Options::memory_nodes, "LIST",
           "NUMA nodes on which the pages of the block memory lie in turn, as "
           "0-1,4; when empty, on all"),
      Bytes(
          "block-extent", &Options::block_extent,
          "Piece of the block memory that one kind of blocks has at a time, a "
          "power of two; no block may be larger"),
      Live(Time(
          "block-write-limit", &Options::block_write_limit,
          absl::Milliseconds(1), hour,
          "How long a block may take to be written before others are told that "
          "it is missing")),
      Text("block-tier-disk", &Options::block_tier_disk, "FOLDER",
           "Where copies of blocks are kept, so that evicted ones can be "
           "loaded again, also after a restart; off when empty"),
      Bytes("block-tier-disk-bytes", &Options::block_tier_disk_bytes,
            "The most that these files take together"),
      List("block-tier-shared", &Options::block_tier_shared, "LIST",
           "Where machines share copies of blocks; the addresses are those of "
           "--tier-shared; off when empty"),
      Live(Named("eviction-policy", &Options::eviction_policy,
                 static_cast<EvictionPolicyKind>(kEvictionPolicies - 1),
                 ParseEvictionPolicy, EvictionPolicyName,
                 "Which pages are evicted first")),
      Switch("learn-reuse", &Options::learn_reuse,
             "Learn what is used again while other policies are in use, too: a "
             "change to reuse begins with that, and what LRU would hit is "
             "counted"),
      Live(Number("low-free-pages", &Options::low_free_pages, 0, kMaxUint32,
                  "Evict in the background when fewer pages than this are "
                  "free; 0 for never")),
      Live(Number("high-free-pages", &Options::high_free_pages, 0, kMaxUint32,
                  "Number of free pages at which background eviction stops")),
      Live(Time("session-grace", &Options::session_grace, zero, hour,
                "How long a session whose stream broke may be resumed")),
      Live(Time("quarantine", &Options::quarantine, zero, hour,
                "How long pages of a dead worker that cannot be watched are "
                "kept from others")),
      Time("attach-token-ttl", &Options::attach_token_ttl,
           absl::Milliseconds(100), hour,
           "How long a token for the memory socket is valid"),
      Number("max-tokens-per-request", &Options::max_tokens_per_request, 1,
             kMaxTokensPerRequest, "Tokens that one call may carry"),
      Live(Number("max-locks-per-session", &Options::max_locks_per_session, 0,
                  kMaxUint32, "Locks that a session may have; 0 for no limit")),
      Live(Number("max-reserved-pages-per-session",
                  &Options::max_reserved_pages_per_session, 0, kMaxUint32,
                  "Pages that a session may have reserved; 0 for no limit")),
      Live(Number("max-block-locks-per-session",
                  &Options::max_block_locks_per_session, 0, kMaxUint32,
                  "Blocks that a session may have locked; 0 for no limit")),
      Live(Number("max-reserved-blocks-per-session",
                  &Options::max_reserved_blocks_per_session, 0, kMaxUint32,
                  "Blocks that a session may have reserved; 0 for no limit")),
      Live(Bytes("max-kept-bytes-per-session",
                 &Options::max_kept_bytes_per_session,
                 "Memory that may be kept for a session: prompts that its "
                 "locks hold, calls that wait, stored answers")),
      Number("max-attach-tokens-per-session",
             &Options::max_attach_tokens_per_session, 1, kMaxUint32,
             "Unused tokens for the memory socket that a session may have"),
      Number("lane-bytes", &Options::lane_bytes, 0, kMaxLaneBytes,
             "Bytes of each lane for requests and answers; 0 for no lanes"),
      Number("max-lanes", &Options::max_lanes, 1, kMaxUint32,
             "Lanes that may be open; one for each session"),
      Time("lane-spin", &Options::lane_spin, zero, absl::Milliseconds(10),
           "How long the thread of lanes spins for the next call before it "
           "sleeps; 0 for not at all"),
      Live(Number("max-calls-per-second", &Options::max_calls_per_second, 0,
                  kMaxUint32,
                  "Calls that a session may make in a second; calls that name "
                  "no open session count for their caller; 0 for no limit")),
      Number("max-calls-per-connection", &Options::max_calls_per_connection, 2,
             kMaxInt32,
             "Calls of one connection that run at the same time, the session's "
             "stream included; more wait in the client"),
      Number("event-history", &Options::event_history, 1, kMaxUint32,
             "Events kept for watchers that come back or are slow"),
      Text("kv-events", &Options::kv_events, "ENDPOINT",
           "tcp://host:port where routers are told what is cached, as by vLLM "
           "or SGLang, unencrypted and with the tokens of prompts; off when "
           "empty"),
      Text("kv-events-replay", &Options::kv_events_replay, "ENDPOINT",
           "tcp://host:port where routers ask for events that they missed; "
           "off when empty"),
      Choice("kv-events-form", &Options::kv_events_form, {"map", "array"},
             "Encoding of these events: maps, as vLLM and SGLang write now, or "
             "arrays, as older versions did"),
      Text("kv-events-topic", &Options::kv_events_topic, "TEXT",
           "Topic of these events; {worker} and {model} stand for their names"),
      List("kv-events-workers", &Options::kv_events_workers, "LIST",
           "Names of the workers, separated by commas; each has a stream on a "
           "port of its own, counted up from the given ones"),
      Number("kv-events-block-tokens", &Options::kv_events_block_tokens, 0,
             kMaxUint32,
             "Tokens of a block in these events, a multiple of page-tokens; 0 "
             "for a page"),
      List("kv-events-include", &Options::kv_events_include, "LIST",
           "Namespaces to include beside the plain ones: salted (which tells "
           "their salts, too), bigram"),
      Switch("kv-events-tiers", &Options::kv_events_tiers,
             "Tell what tier-host-bytes and tier-disk keep, too, as CPU and "
             "STORAGE; only for routers that tell these from the pool"),
      Bytes("tier-host-bytes", &Options::tier_host_bytes,
            "Memory of pandod where copies of cached pages are kept until it "
            "ends, so that evicted prefixes can be loaded again; off when not "
            "given"),
      Text("tier-disk", &Options::tier_disk, "FOLDER",
           "Where copies of cached pages are kept, so that evicted prefixes "
           "can be loaded again; off when empty"),
      Bytes("tier-disk-bytes", &Options::tier_disk_bytes,
            "Size of these files, which are made in full at the start"),
      List(
          "tier-shared", &Options::tier_shared, "LIST",
          "Where copies of cached pages are kept that many machines share: "
          "file:///FOLDER, as on NFS; or redis://HOST:PORT, rediss://HOST:PORT "
          "for TLS or unix:///PATH of Redis or Valkey, of a cluster some "
          "nodes, "
          "separated by commas; after the first, if given, ?user=, "
          "password-file=, ca=, certificate=, key= and ttl= with & between "
          "them; off when empty"),
      Text("tier-shared-key-file", &Options::tier_shared_key_file, "PATH",
           "File with the secret that signs what is shared, the same on all "
           "machines: they load only what was signed with it; not signed when "
           "empty"),
      Number("tier-min-load-tokens", &Options::tier_min_load_tokens, 1,
             kMaxInt32, "Fewer tokens than this are not loaded, but computed"),
      Choice("tier-write", &Options::tier_write,
             {"at-once", "first-hit", "second-hit"},
             "When a page is copied: as soon as it is cached, or when other "
             "requests use it for the first or the second time; a block: as "
             "soon as it is published, or when it is acquired"),
      Choice("keep", &Options::keep, {"auto", "no"},
             "Whether sockets and host memory outlive pandod, to be taken over "
             "by the next one; auto: where pando-keeper or systemd keeps them"),
      Live(Time("drain-timeout", &Options::drain_timeout, zero, hour,
                "How long to wait for the workers after SIGTERM")),
      Live(Time("check-invariants-every", &Options::check_invariants_every,
                zero, hour, "Verify the whole index this often; 0 for never")),
      Fraction("verify-pages", &Options::verify_pages,
               "Share of the pages whose bytes are verified whenever they are "
               "handed out or reused; 0 for none"),
      Live(Choice("log-level", &Options::log_level,
                  {"debug", "info", "warning", "error"},
                  "Lowest level that is logged")),
      Choice("log-format", &Options::log_format, {"auto", "text", "json"},
             "Format of the log; auto: text on a terminal, else JSON"),
      Live(Time("slow-call", &Options::slow_call, zero, hour,
                "Log calls whose handler takes longer than this; 0 for none")),
  };
}

}  // namespace

const std::vector<OptionSpec>& OptionTable() {
  static const auto* const table =
      new std::vector<OptionSpec>(MakeOptionTable());
  return *table;
}

std::string EnvironmentName(const std::string& option) {
  return absl::StrCat(
      kEnvironmentPrefix,
      absl::AsciiStrToUpper(absl::StrReplaceAll(option, {{"-", "_"}})));
}

const std::vector<std::string>& PoolOptions() {
  static const auto* const names = new std::vector<std::string>{
      "pool-pages",   "pool-bytes",   "pool-fraction", "pool-shards",
      "pool-memory",  "pool-devices", "page-tokens",   "layers",
      "kv-planes",    "heads",        "head-size",     "dtype",
      "layout-order", "page-bytes",   "page-format",   "model-config"};
  return *names;
}

bool IsOfLayout(const std::string& option) {
  return option == "model" ||
         (option != "model-config" && !absl::StartsWith(option, "pool-") &&
          absl::c_linear_search(PoolOptions(), option));
}

bool IsInEffect(const OptionSpec& spec, const Options& options) {
  if (!options.has_pool && absl::c_linear_search(PoolOptions(), spec.name)) {
    return false;
  }
  if (options.is_open && IsOfLayout(spec.name)) {
    return absl::c_linear_search(options.stated, spec.name);
  }
  if (spec.name == "pool-fraction") return options.pool_fraction > 0;
  if (spec.name == "pool-bytes") return options.pool_bytes > 0;
  if (spec.name == "pool-pages") {
    return options.pool_fraction == 0 && options.pool_bytes == 0;
  }
  if (spec.name == "page-bytes") return options.page_bytes > 0;
  if (spec.name == "memory") {
    return options.memory > 0 && !options.chooses_memory;
  }
  if (spec.name == "tier-host-bytes") return options.tier_host_bytes > 0;
  if (spec.name == "tier-disk-bytes") return options.tier_disk_bytes > 0;
  if (spec.name == "block-tier-disk-bytes") {
    return options.block_tier_disk_bytes > 0;
  }
  if (spec.name == "kv-planes" || spec.name == "heads" ||
      spec.name == "head-size" || spec.name == "dtype") {
    return options.page_bytes == 0;
  }
  return true;
}

}  // namespace pando
