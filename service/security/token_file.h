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

// One file with a bearer token in each line, and one at least: an old and a new
// one while tokens are changed. Only hashes of them are kept. For one thread.
class TokenFile {
 public:
  static constexpr size_t kMinTokenBytes = 16;

  explicit TokenFile(std::string path) : path_(std::move(path)) {}

  // Reads the file if it is another one than before, and says whether it was.
  // After an error the tokens are those of before; the error comes once for
  // each state of the file.
  absl::StatusOr<bool> Refresh();
  // Takes the same time whichever token is asked for.
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
