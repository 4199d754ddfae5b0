#ifndef PANDO_TIERS_REDIS_REDIS_STORE_H_
#define PANDO_TIERS_REDIS_REDIS_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tiers/redis/redis_client.h"
#include "tiers/redis/tls_stream.h"
#include "tiers/shared/remote_store.h"

namespace pando {

// Keeps each block under a key of Redis or Valkey. A key expires when it was
// not used for Config::ttl; of blocks of one prompt, those further back expire
// a little earlier, and are written and touched first. Owned by RemoteBlocks
// or SharedBlocks; thread-safe.
class RedisStore final : public RemoteStore {
 public:
  struct Config {
    std::vector<RedisAddress> seeds;  // one server, or some nodes of a cluster
    std::string user;
    std::string password_file;
    RedisTlsFiles tls;
    absl::Duration ttl = absl::Hours(24);
  };

  // Reads the TLS files of `config`, but makes no connection. `digest` names
  // the model and the shape of the blocks: it is a part of each key. REQUIRES:
  // `config` comes from ReadRedisOptions.
  static absl::StatusOr<std::unique_ptr<RedisStore>> Open(Config config,
                                                          uint64_t digest);

  absl::StatusOr<Presence> CountPresent(std::span<const BlockKey> keys,
                                        absl::Time deadline) override;
  void Get(std::span<Transfer> blocks, absl::Time deadline) override;
  void Put(std::span<Transfer> blocks, absl::Time used,
           absl::Time deadline) override;
  absl::StatusOr<std::vector<bool>> Touch(std::span<const BlockKey> keys,
                                          absl::Time used,
                                          absl::Time deadline) override;
  absl::Status Erase(const BlockKey& key) override;
  absl::Status EraseAll(std::optional<uint64_t> ns_digest) override;

 private:
  RedisStore(std::vector<RedisAddress> seeds, RedisLogin login,
             absl::Duration ttl, uint64_t digest);

  std::string NameOf(const BlockKey& key) const;
  // Returns the text with which the keys of a namespace begin, or all keys with
  // none.
  std::string PrefixOf(std::optional<uint64_t> ns_digest) const;
  // Returns when a block expires, in milliseconds since 1970, as text.
  std::string ExpiryOf(const BlockKey& key, absl::Time used) const;
  absl::Status EraseAllOf(const RedisAddress& node, const std::string& prefix,
                          absl::Time deadline);
  absl::Status EraseNames(std::span<const std::string> names,
                          absl::Time deadline);

  const absl::Duration ttl_;
  const std::string prefix_;
  RedisClient client_;
};

}  // namespace pando

#endif  // PANDO_TIERS_REDIS_REDIS_STORE_H_
