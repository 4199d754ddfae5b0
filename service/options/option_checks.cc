#include "service/options/option_checks.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <limits>
#include <regex>
#include <string>

#include "absl/strings/str_format.h"
#include "base/default_socket.h"
#include "base/status_macros.h"
#include "gpu/numa_nodes.h"
#include "service/options/option_checks_kv_events.h"

namespace pando {
namespace {

// The longest path that a Unix socket address holds.
constexpr size_t kMaxSocketPath = 107;
constexpr size_t kMaxAddress = 300;

absl::Status CheckSocketPath(const std::string& name, const std::string& path) {
  if (!path.empty() && path.size() <= kMaxSocketPath) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is '%s', %u bytes; must be a path of 1 to %u bytes",
                      name, path, path.size(), kMaxSocketPath));
}

absl::Status CheckAddress(const std::string& name, const std::string& address) {
  static const std::regex form("(\\[[0-9a-fA-F:.]+\\]|[^:\\s]+):\\d{1,5}");
  // std::regex takes a stack frame for each character that it matches.
  if (address.size() > kMaxAddress) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is %u bytes long; must be at most %u", name,
                        address.size(), kMaxAddress));
  }
  if (address.empty() ||
      (std::regex_match(address, form) &&
       std::stoul(address.substr(address.rfind(':') + 1)) <= 65535)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s is '%s'; must be host:port with a port up to 65535, or empty", name,
      address));
}

// Checks that TCP is served with certificates, or in the clear if an option
// says so.
absl::Status CheckTcp(const Options& options) {
  const bool all = !options.tls_certificate.empty() &&
                   !options.tls_key.empty() && !options.tls_client_ca.empty();
  const bool none = options.tls_certificate.empty() &&
                    options.tls_key.empty() && options.tls_client_ca.empty();
  if (options.tcp.empty()) {
    if (none && !options.tcp_insecure) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "tls-certificate, tls-key, tls-client-ca or tcp-insecure is given, "
        "which needs tcp");
  }
  if (options.tcp_insecure ? none : all) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "tcp is '%s'; needs all of tls-certificate, tls-key and tls-client-ca, "
      "or tcp-insecure yes and none of them",
      options.tcp));
}

// Refuses options for GPUs beside a host pool, and gives each shard a device.
absl::Status CompleteDevices(Options& options) {
  if (options.pool_memory == "host") {
    const std::string_view given = !options.pool_devices.empty()
                                       ? "pool-devices"
                                   : options.pool_fraction > 0 ? "pool-fraction"
                                                               : "";
    if (given.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is given, which needs pool-memory cuda", given));
  }
  for (uint32_t shard = 0; options.pool_devices.size() < options.pool_shards;
       ++shard) {
    options.pool_devices.push_back(absl::StrFormat("%u", shard));
  }
  return absl::OkStatus();
}

absl::Status CheckWatermark(const Options& options) {
  const uint32_t low = options.low_free_pages;
  const uint32_t high = options.high_free_pages;
  if ((low == 0) != (high == 0)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("low-free-pages is %u and high-free-pages is %u; give "
                        "both, or neither",
                        low, high));
  }
  if (low > high) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "low-free-pages is %u; must be at most high-free-pages, which is %u",
        low, high));
  }
  if (high >= options.pool_pages) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "high-free-pages is %u; must be less than the pages of the pool, %u",
        high, options.pool_pages));
  }
  return absl::OkStatus();
}

absl::Status CheckMemory(const Options& options) {
  const uint64_t extent = options.block_extent;
  if (!std::has_single_bit(extent) || extent < kPlaceBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("block-extent is %u; must be a power of two from %u on",
                        extent, kPlaceBytes));
  }
  if (!options.memory_nodes.empty()) {
    RETURN_IF_ERROR(NodesOf(options.memory_nodes).status());
  }
  constexpr uint64_t kMost = uint64_t{1} << 43;  // places have 32 bits
  if (options.memory == 0) return absl::OkStatus();
  if (options.memory >= extent && options.memory <= kMost) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "memory is %u; must be from %u, which is block-extent, to %u",
      options.memory, extent, kMost));
}

absl::Status CheckFloors(const Options& options) {
  uint64_t floors = 0;
  for (const QuotaClass& quota : options.quotas) floors += quota.floor_pages;
  const uint32_t usable_pages = options.pool_pages - 1;  // page 0 is padding
  if (floors <= usable_pages) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "the floor_pages of all quotas are %u together; must be at most %u, the "
      "pages of the pool but for the padding page",
      floors, usable_pages));
}

absl::Status CheckPageBytes(const Options& options) {
  if (options.page_bytes == 0) return absl::OkStatus();
  if (options.page_bytes % options.layers != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("page-bytes is %u; must be a multiple of layers, %u, "
                        "so that a page has as many in each",
                        options.page_bytes, options.layers));
  }
  return absl::OkStatus();
}

// Checks that the model is given for a tier whose copies outlive pandod,
// because they are found by the model. The message does not repeat the tier's
// address, which may contain a password.
absl::Status CheckModel(const char* tier, const Options& options) {
  if (!options.model.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s is given, which needs model: what is kept is found by it", tier));
}

absl::Status CheckTiers(const Options& options) {
  if (options.tier_disk.empty() != (options.tier_disk_bytes == 0)) {
    const char* const given =
        options.tier_disk.empty() ? "tier-disk-bytes" : "tier-disk";
    const char* const missing =
        options.tier_disk.empty() ? "tier-disk" : "tier-disk-bytes";
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is given, which needs %s", given, missing));
  }
  if (!options.tier_shared_key_file.empty() && options.tier_shared.empty() &&
      options.block_tier_shared.empty()) {
    return absl::InvalidArgumentError(
        "tier-shared-key-file is given, which needs tier-shared or "
        "block-tier-shared");
  }
  if (!options.tier_disk.empty()) {
    RETURN_IF_ERROR(CheckModel("tier-disk", options));
  }
  if (options.tier_shared.empty()) return absl::OkStatus();
  return CheckModel("tier-shared", options);
}

absl::Status CheckBlockTier(const Options& options) {
  const bool has_folder = !options.block_tier_disk.empty();
  if (has_folder != (options.block_tier_disk_bytes > 0)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s is given, which needs %s",
        has_folder ? "block-tier-disk" : "block-tier-disk-bytes",
        has_folder ? "block-tier-disk-bytes" : "block-tier-disk"));
  }
  const bool is_shared = !options.block_tier_shared.empty();
  if ((!has_folder && !is_shared) || options.memory > 0 ||
      options.chooses_memory) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is given, which needs memory: it keeps blocks",
                      has_folder ? "block-tier-disk" : "block-tier-shared"));
}

// Sets and checks the socket for pando-movers. pandod has no CUDA context, so
// pando-movers copy pages of GPUs.
absl::Status CompleteMoverSocket(Options& options) {
  std::string& path = options.mover_socket;
  if (path.empty() && HasTiers(options) && options.pool_memory == "cuda") {
    path = std::filesystem::path(options.socket).replace_filename("mover.sock");
  }
  if (path.empty()) return absl::OkStatus();
  if (!HasTiers(options)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "mover-socket is '%s', which needs a tier to copy to", path));
  }
  for (const std::string& other : {options.socket, options.memory_socket}) {
    if (path != other) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "mover-socket is '%s'; must differ from socket and memory-socket",
        path));
  }
  return CheckSocketPath("mover-socket", path);
}

// Checks the options that depend on pool_pages.
absl::Status CheckPool(const Options& options) {
  absl::Status status =
      MakeKvLayout(ShapeOf(options), options.pool_pages).status();
  return status.ok() ? CheckPages(options) : status;
}

// Sets and checks the number of pages. It is not known yet for a pool that is
// open, or given as a fraction.
absl::Status ResolvePool(Options& options) {
  if (options.is_open) {
    // A number of the right size lets the options that count pages be checked.
    ASSIGN_OR_RETURN(const KvLayout smallest,
                     MakeKvLayout(ShapeOf(options), 2));
    options.pool_pages = static_cast<uint32_t>(
        std::clamp<uint64_t>(options.pool_bytes / PageBytes(smallest), 2,
                             std::numeric_limits<uint32_t>::max()));
    return absl::OkStatus();
  }
  if (options.pool_fraction > 0) {
    return MakeKvLayout(ShapeOf(options), options.pool_pages).status();
  }
  if (options.pool_bytes == 0) return CheckPool(options);
  return SetPoolPages("pool-bytes", options.pool_bytes, options);
}

}  // namespace

bool HasTiers(const Options& options) {
  return options.tier_host_bytes > 0 || !options.tier_disk.empty() ||
         !options.tier_shared.empty();
}

absl::Status CheckPages(const Options& options) {
  absl::Status status = CheckWatermark(options);
  return status.ok() ? CheckFloors(options) : status;
}

absl::Status CheckBlockQuotas(const Options& options) {
  if (options.block_quotas.empty()) return absl::OkStatus();
  if (options.memory == 0 && !options.chooses_memory) {
    return absl::InvalidArgumentError(
        "block_quotas are given, which need memory");
  }
  uint64_t left = options.memory;
  for (const BlockQuota& quota : options.block_quotas) {
    if (quota.cap_bytes.value_or(options.block_extent) < options.block_extent) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "the cap of the block quota '%s' is %u; must be at least %u, which "
          "is block-extent",
          quota.name, *quota.cap_bytes, options.block_extent));
    }
    if (options.memory > 0 && quota.floor_bytes > left) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "the floor of the block quota '%s' is %u; the floors before it leave "
          "%u of the memory, which is %u",
          quota.name, quota.floor_bytes, left, options.memory));
    }
    left -= std::min(left, quota.floor_bytes);
  }
  return absl::OkStatus();
}

absl::Status SetPoolPages(std::string_view size, uint64_t bytes,
                          Options& options) {
  constexpr uint32_t kMinPages = 2;
  ASSIGN_OR_RETURN(const KvLayout smallest,
                   MakeKvLayout(ShapeOf(options), kMinPages));
  const uint64_t pages = bytes / PageBytes(smallest);
  if (pages < kMinPages || pages > std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s is %u, %u pages of %u bytes; must be from %u to %u pages", size,
        bytes, pages, PageBytes(smallest), kMinPages,
        std::numeric_limits<uint32_t>::max()));
  }
  options.pool_pages = static_cast<uint32_t>(pages);
  return CheckPool(options);
}

absl::Status CompleteOptions(Options& options) {
  if (options.socket.empty()) options.socket = SocketToServe();
  if (options.memory_socket.empty()) {
    options.memory_socket =
        std::filesystem::path(options.socket).replace_filename("memory.sock");
  }
  // The path is made absolute, because clients get it and may run in other
  // folders.
  options.memory_socket = std::filesystem::absolute(options.memory_socket);
  for (absl::Status status :
       {CheckSocketPath("socket", options.socket),
        CheckSocketPath("memory-socket", options.memory_socket),
        CheckAddress("tcp", options.tcp), CheckTcp(options),
        CheckAddress("http", options.http), CompleteDevices(options),
        CheckMemory(options), CheckPageBytes(options), ResolvePool(options),
        CompleteKvEvents(options), CheckTiers(options), CheckBlockTier(options),
        CheckBlockQuotas(options), CompleteMoverSocket(options)}) {
    if (!status.ok()) return status;
  }
  if (options.socket == options.memory_socket) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "memory-socket is '%s'; must differ from socket", options.socket));
  }
  return absl::OkStatus();
}

}  // namespace pando
