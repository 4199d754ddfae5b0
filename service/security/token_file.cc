#include "service/security/token_file.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace pando {

absl::Status TokenFile::Refresh() {
  const Version version = Look();
  if (version == seen_) return absl::OkStatus();
  seen_ = version;
  absl::StatusOr<std::vector<Hash>> hashes = Read();
  if (!hashes.ok()) return hashes.status();
  hashes_ = *std::move(hashes);
  return absl::OkStatus();
}

bool TokenFile::Has(std::string_view token) const {
  const Hash hash = HashOf(token);
  bool found = false;
  for (const Hash& known : hashes_) {
    found |= CRYPTO_memcmp(known.data(), hash.data(), hash.size()) == 0;
  }
  return found;
}

TokenFile::Hash TokenFile::HashOf(std::string_view token) {
  Hash hash;
  static_assert(std::tuple_size_v<Hash> == SHA256_DIGEST_LENGTH);
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(),
         hash.data());
  return hash;
}

TokenFile::Version TokenFile::Look() const {
  struct stat info;
  // An inode that no file has.
  if (stat(path_.c_str(), &info) != 0) return {.inode = ~ino_t{0}};
  return {.inode = info.st_ino,
          .size = info.st_size,
          .changed_ns = int64_t{info.st_ctim.tv_sec} * 1'000'000'000 +
                        info.st_ctim.tv_nsec};
}

absl::StatusOr<std::vector<TokenFile::Hash>> TokenFile::Read() const {
  std::ifstream file(path_);
  std::stringstream text;
  text << file.rdbuf();
  if (!file.good()) {
    return absl::NotFoundError(
        absl::StrFormat("token-file %s cannot be read, or is empty", path_));
  }
  std::vector<Hash> hashes;
  int number = 0;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(text.str(), '\n'))) {
    ++number;
    const absl::string_view token = absl::StripAsciiWhitespace(line);
    if (token.empty()) continue;
    if (token.size() < kMinTokenBytes) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "token-file %s: the token in line %d has %u bytes; must have at "
          "least %u",
          path_, number, token.size(), kMinTokenBytes));
    }
    hashes.push_back(HashOf({token.data(), token.size()}));
  }
  return hashes;
}

}  // namespace pando
