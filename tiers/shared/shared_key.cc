#include "tiers/shared/shared_key.h"

#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"

namespace pando {
namespace {

// DigestOf signs a text that begins with this; no header of a block begins so.
constexpr std::string_view kDigestDomain = "pando-shared-digest-v1";

struct MacDeleter {
  void operator()(EVP_MAC* mac) const { EVP_MAC_free(mac); }
};

const unsigned char* BytesOf(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

// A file of root may be read by its group: that is how Kubernetes gives a
// secret to a pod that does not run as root.
absl::Status CheckFile(const std::string& path, const struct stat& status) {
  if (!S_ISREG(status.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("tier-shared-key-file is '", path, "', which is no file"));
  }
  if (status.st_uid != 0 && status.st_uid != geteuid()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "tier-shared-key-file is '%s', which belongs to user %u; must belong "
        "to pandod's user, %u, or to root",
        path, status.st_uid, geteuid()));
  }
  const bool is_own = status.st_uid == geteuid();
  const mode_t denied = is_own ? S_IRWXG | S_IRWXO : S_IWGRP | S_IRWXO;
  if ((status.st_mode & denied) != 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "tier-shared-key-file is '%s', whose mode is %04o; only %s may have "
        "the right to read it",
        path, status.st_mode & 07777,
        is_own ? "its owner" : "root and its group"));
  }
  if (status.st_size < static_cast<off_t>(SharedKey::kMinBytes) ||
      status.st_size > static_cast<off_t>(SharedKey::kMaxBytes)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "tier-shared-key-file is '%s', which has %d bytes; must have %u to %u",
        path, status.st_size, SharedKey::kMinBytes, SharedKey::kMaxBytes));
  }
  return absl::OkStatus();
}

}  // namespace

void SharedKey::Free::operator()(evp_mac_ctx_st* context) const {
  EVP_MAC_CTX_free(context);
}

absl::StatusOr<std::unique_ptr<SharedKey>> SharedKey::Read(
    const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat status;
  if (!file.valid() || fstat(file.get(), &status) != 0) {
    return absl::ErrnoToStatus(errno, "tier-shared-key-file: open " + path);
  }
  RETURN_IF_ERROR(CheckFile(path, status));
  std::vector<std::byte> secret(static_cast<size_t>(status.st_size));
  const ssize_t got = read(file.get(), secret.data(), secret.size());
  if (got < 0) {
    return absl::ErrnoToStatus(errno, "tier-shared-key-file: read " + path);
  }
  if (static_cast<size_t>(got) < secret.size()) {
    return absl::UnavailableError(absl::StrCat(
        "tier-shared-key-file is '", path, "', which is being written"));
  }
  auto key = std::make_unique<SharedKey>(secret);
  OPENSSL_cleanse(secret.data(), secret.size());
  return key;
}

SharedKey::SharedKey(std::span<const std::byte> secret) {
  const std::unique_ptr<EVP_MAC, MacDeleter> hmac(
      EVP_MAC_fetch(nullptr, "HMAC", nullptr));
  CHECK(hmac != nullptr);
  context_.reset(EVP_MAC_CTX_new(hmac.get()));
  std::string digest = "SHA256";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(),
                                       digest.size()),
      OSSL_PARAM_construct_end()};
  CHECK(context_ != nullptr && EVP_MAC_init(context_.get(), BytesOf(secret),
                                            secret.size(), parameters) == 1);
}

SharedKey::Mac SharedKey::Sign(std::span<const std::byte> head,
                               std::span<const std::byte> rest) const {
  const Context context(EVP_MAC_CTX_dup(context_.get()));
  CHECK(context != nullptr);
  for (const std::span<const std::byte> part : {head, rest}) {
    CHECK(EVP_MAC_update(context.get(), BytesOf(part), part.size()) == 1);
  }
  Mac mac;
  size_t bytes = 0;
  CHECK(EVP_MAC_final(context.get(),
                      reinterpret_cast<unsigned char*>(mac.data()), &bytes,
                      mac.size()) == 1 &&
        bytes == mac.size());
  return mac;
}

bool SharedKey::Verify(const Mac& mac, std::span<const std::byte> head,
                       std::span<const std::byte> rest) const {
  const Mac expected = Sign(head, rest);
  return CRYPTO_memcmp(mac.data(), expected.data(), mac.size()) == 0;
}

uint64_t SharedKey::DigestOf(uint64_t digest) const {
  const Mac mac = Sign(std::as_bytes(std::span(kDigestDomain)),
                       std::as_bytes(std::span(&digest, 1)));
  uint64_t derived = 0;
  std::memcpy(&derived, mac.data(), sizeof(derived));
  return derived;
}

}  // namespace pando
