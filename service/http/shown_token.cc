#include "service/http/shown_token.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace pando {

std::string ShownToken(std::string_view authorization) {
  const absl::string_view header(authorization.data(), authorization.size());
  const size_t space = header.find(' ');
  if (space == absl::string_view::npos) return "";
  const absl::string_view scheme = header.substr(0, space);
  const absl::string_view value = header.substr(space + 1);
  if (absl::EqualsIgnoreCase(scheme, "Bearer")) return std::string(value);
  std::string user_and_password;
  if (!absl::EqualsIgnoreCase(scheme, "Basic") ||
      !absl::Base64Unescape(value, &user_and_password)) {
    return "";
  }
  const size_t colon = user_and_password.find(':');
  return colon == std::string::npos ? "" : user_and_password.substr(colon + 1);
}

}  // namespace pando
