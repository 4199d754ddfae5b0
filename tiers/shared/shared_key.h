#ifndef PANDO_TIERS_SHARED_SHARED_KEY_H_
#define PANDO_TIERS_SHARED_SHARED_KEY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

// A type of OpenSSL. It is declared here because evp.h would otherwise be
// included wherever blocks are.
struct evp_mac_ctx_st;

namespace pando {

// A secret that all machines that share a store know. It signs their values, so
// that a program that can write to the store, but does not know the secret,
// cannot forge one. Owned by what signs them. Immutable; thread-safe.
class SharedKey {
 public:
  static constexpr size_t kMinBytes = 32;
  static constexpr size_t kMaxBytes = 4096;
  static constexpr size_t kMacBytes = 32;
  using Mac = std::array<std::byte, kMacBytes>;

  // Reads the secret: all bytes of the file. Fails unless the file belongs to
  // this process's user and no other user has rights to it, or it belongs to
  // root and only root and the file's group, which must not write, have any.
  static absl::StatusOr<std::unique_ptr<SharedKey>> Read(
      const std::string& path);
  explicit SharedKey(std::span<const std::byte> secret);

  // Returns the HMAC-SHA256 of `head` followed by `rest`.
  Mac Sign(std::span<const std::byte> head,
           std::span<const std::byte> rest) const;
  // Returns whether `mac` is the one that Sign returns. The time it takes does
  // not depend on how much of the MAC is right.
  bool Verify(const Mac& mac, std::span<const std::byte> head,
              std::span<const std::byte> rest) const;
  // Returns the digest for blocks that are signed with this key. It differs for
  // each key, so that blocks of another key, or of none, have other names.
  uint64_t DigestOf(uint64_t digest) const;

 private:
  struct Free {
    void operator()(evp_mac_ctx_st* context) const;
  };
  using Context = std::unique_ptr<evp_mac_ctx_st, Free>;

  Context context_;  // knows the secret; it is copied for each MAC
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_SHARED_KEY_H_
