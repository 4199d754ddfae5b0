#include "service/security/token_file.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <fstream>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace pando {

absl::StatusOr<bool> TokenFile::Refresh() {
  const FileVersion version = VersionOf(path_);
  if (version == seen_) return false;
  seen_ = version;
  ASSIGN_OR_RETURN(std::vector<Hash> hashes, Read());
  hashes_ = std::move(hashes);
  return true;
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

absl::StatusOr<std::vector<TokenFile::Hash>> TokenFile::Read() const {
  std::stringstream text;
  text << std::ifstream(path_).rdbuf();
  if (!text.good()) {
    return absl::NotFoundError(
        absl::StrFormat("token_file %s cannot be read, or is empty", path_));
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
          "token_file %s: the token in line %d has %u bytes; must have at "
          "least %u",
          path_, number, token.size(), kMinTokenBytes));
    }
    hashes.push_back(HashOf({token.data(), token.size()}));
  }
  if (hashes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("token_file %s has no token", path_));
  }
  return hashes;
}

}  // namespace pando
