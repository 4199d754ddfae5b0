#ifndef PANDO_SERVICE_SECURITY_TOKEN_FILE_H_
#define PANDO_SERVICE_SECURITY_TOKEN_FILE_H_

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "service/security/file_version.h"

namespace pando {

// A file with a bearer token in each line: usually one, and an old and a new
// one while tokens are rotated. Only hashes of the tokens are kept in memory.
// Not thread-safe.
class TokenFile {
 public:
  static constexpr size_t kMinTokenBytes = 16;

  explicit TokenFile(std::string path) : path_(std::move(path)) {}

  // Reads the file if it has changed, and returns whether it had. After an
  // error the tokens stay as they were; the error is returned only once for
  // each state of the file.
  absl::StatusOr<bool> Refresh();
  // Returns whether the file has this token. It takes the same time for any
  // token, so that no caller can guess a token by measuring.
  bool Has(std::string_view token) const;

 private:
  using Hash = std::array<unsigned char, 32>;
  static Hash HashOf(std::string_view token);
  absl::StatusOr<std::vector<Hash>> Read() const;

  const std::string path_;
  FileVersion seen_;
  std::vector<Hash> hashes_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_SECURITY_TOKEN_FILE_H_
