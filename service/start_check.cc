#include "service/start_check.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "base/default_socket.h"
#include "base/status_macros.h"
#include "gpu/numa_nodes.h"
#include "service/memory/make_pool.h"
#include "service/security/access_control.h"
#include "service/security/tls_credentials.h"
#include "service/socket_group.h"
#include "tiers/blocks/block_files.h"
#include "tiers/local/disk_store.h"
#include "tiers/local/host_store.h"
#include "tiers/shared/shared_key.h"

namespace pando {
namespace {

absl::Status CheckSocketFolder(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  const std::string folder = std::filesystem::absolute(path).parent_path();
  if (access(folder.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  if (errno == ENOENT) {
    return absl::NotFoundError(absl::StrFormat(
        "cannot bind %s: the folder %s does not exist; make it, or choose "
        "another with --socket and --memory-socket",
        path, folder));
  }
  return absl::ErrnoToStatus(
      errno, absl::StrFormat("cannot bind %s as user %u", path, geteuid()));
}

absl::Status CheckNodes(const Options& options) {
  if (options.memory_nodes.empty()) return absl::OkStatus();
  return UsableNodesOf(options.memory_nodes).status();
}

absl::Status CheckSecrets(const Options& options) {
  if (!options.tls_certificate.empty()) {
    RETURN_IF_ERROR(MakeTlsCredentials({options.tls_certificate,
                                        options.tls_key, options.tls_client_ca})
                        .status());
  }
  if (!options.credentials.empty()) {
    RETURN_IF_ERROR(AccessControl::Create(options.credentials, {}).status());
  }
  if (options.tier_shared_key_file.empty()) return absl::OkStatus();
  return SharedKey::Read(options.tier_shared_key_file).status();
}

absl::Status CheckTiers(const Options& options) {
  if (options.is_open) return CheckTiersOfOpenPool(options);
  ASSIGN_OR_RETURN(const KvLayout layout,
                   MakeKvLayout(ShapeOf(options), options.pool_pages));
  const uint64_t block_bytes = PageBytes(layout) * options.pool_shards;
  if (options.tier_host_bytes > 0) {
    RETURN_IF_ERROR(
        HostStore::BytesOf(options.tier_host_bytes, block_bytes).status());
  }
  if (options.tier_disk.empty()) return absl::OkStatus();
  return DiskStore::Check({.folder = options.tier_disk,
                           .max_bytes = options.tier_disk_bytes,
                           .block_bytes = block_bytes});
}

absl::Status CheckBlockTierDisk(const Options& options) {
  if (options.block_tier_disk.empty()) return absl::OkStatus();
  return BlockFiles::Check({.folder = options.block_tier_disk,
                            .max_bytes = options.block_tier_disk_bytes});
}

}  // namespace

absl::Status CheckTiersOfOpenPool(const Options& options) {
  if (options.tier_host_bytes == 0) return absl::OkStatus();
  constexpr uint64_t kSmallestPage = 1;
  return HostStore::BytesOf(options.tier_host_bytes, kSmallestPage).status();
}

absl::Status CheckStart(const Options& options) {
  for (const std::string& path :
       {options.socket, options.memory_socket, options.mover_socket}) {
    // The start makes the folder of the default socket if it is missing.
    if (std::filesystem::path(path).parent_path() ==
        std::filesystem::path(SocketToServe()).parent_path()) {
      continue;
    }
    RETURN_IF_ERROR(CheckSocketFolder(path));
  }
  RETURN_IF_ERROR(SocketGroup(options.socket_group).status());
  RETURN_IF_ERROR(CheckSecrets(options));
  RETURN_IF_ERROR(CheckNodes(options));
  RETURN_IF_ERROR(CheckPoolFits(options));
  RETURN_IF_ERROR(CheckBlockMemoryFits(options));
  RETURN_IF_ERROR(CheckBlockTierDisk(options));
  return CheckTiers(options);
}

}  // namespace pando
