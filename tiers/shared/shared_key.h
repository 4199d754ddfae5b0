#ifndef PANDO_TIERS_SHARED_SHARED_KEY_H_
#define PANDO_TIERS_SHARED_SHARED_KEY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

// A type of OpenSSL; evp.h would be included wherever blocks are.
struct evp_mac_ctx_st;

namespace pando {

// A secret of all machines that share a store: who may only write there cannot
// make a value that is signed with it. Owned by BlockValues. Thread-safe.
class SharedKey {
 public:
  static constexpr size_t kMinBytes = 32;
  static constexpr size_t kMaxBytes = 4096;
  static constexpr size_t kMacBytes = 32;
  using Mac = std::array<std::byte, kMacBytes>;

  // All bytes of the file are the secret. Fails when others might read it.
  static absl::StatusOr<std::unique_ptr<SharedKey>> Read(
      const std::string& path);
  explicit SharedKey(std::span<const std::byte> secret);

  // HMAC-SHA256 of both parts, one after the other.
  Mac Sign(std::span<const std::byte> head,
           std::span<const std::byte> rest) const;
  // In a time that does not depend on how much of the MAC is right.
  bool Verify(const Mac& mac, std::span<const std::byte> head,
              std::span<const std::byte> rest) const;
  // The digest for blocks that are signed with this key, so that those of
  // another key, or of none, have other names.
  uint64_t DigestOf(uint64_t digest) const;

 private:
  struct Free {
    void operator()(evp_mac_ctx_st* context) const;
  };
  using Context = std::unique_ptr<evp_mac_ctx_st, Free>;

  Context context_;  // is copied for each MAC
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_SHARED_KEY_H_
