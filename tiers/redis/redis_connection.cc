#include "tiers/redis/redis_connection.h"

#include <fstream>
#include <sstream>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tiers/redis/socket_stream.h"

namespace pando {
namespace {

constexpr size_t kMaxErrorText = 200;

absl::StatusOr<std::unique_ptr<ByteStream>> OpenStream(
    const RedisAddress& address, const RedisLogin& login, absl::Time deadline) {
  ASSIGN_OR_RETURN(UniqueFd fd, ConnectTo(address, deadline));
  if (!address.has_tls) return std::make_unique<SocketStream>(std::move(fd));
  return TlsStream::Open(login.tls.get(), std::move(fd), address.host,
                         deadline);
}

absl::StatusOr<std::string> ReadPassword(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  const std::string password(absl::StripAsciiWhitespace(text.str()));
  if (!password.empty()) return password;
  return absl::FailedPreconditionError(
      absl::StrCat("password-file of the shared store: ", path,
                   " cannot be read, or is empty"));
}

}  // namespace

absl::Status ErrorOf(const RespReply& reply) {
  const std::string text =
      absl::StrCat("the shared store says: ",
                   absl::CHexEscape(reply.text.substr(0, kMaxErrorText)));
  if (absl::StartsWith(reply.text, "OOM ")) {
    return absl::ResourceExhaustedError(text);
  }
  return absl::UnavailableError(text);
}

absl::StatusOr<std::unique_ptr<RedisConnection>> RedisConnection::Open(
    const RedisAddress& address, const RedisLogin& login, absl::Time deadline) {
  ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stream,
                   OpenStream(address, login, deadline));
  auto connection = absl::WrapUnique(new RedisConnection(std::move(stream)));
  RETURN_IF_ERROR(connection->LogIn(login, deadline));
  return connection;
}

absl::Status RedisConnection::LogIn(const RedisLogin& login,
                                    absl::Time deadline) {
  if (login.password_file.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string password,
                   ReadPassword(login.password_file));
  const RespRequest request = login.user.empty()
                                  ? RespRequest({"AUTH", password})
                                  : RespRequest({"AUTH", login.user, password});
  std::vector<iovec> parts;
  request.AppendTo(parts);
  RETURN_IF_ERROR(Send(std::move(parts), deadline));
  ASSIGN_OR_RETURN(const RespReply reply,
                   replies_.Read(RespReader::kMaxShortReply, deadline));
  if (reply.kind == RespReply::Kind::kText) return absl::OkStatus();
  // Only the first word of the error is shown: a server that does not know the
  // command repeats the password after it.
  const std::string word = reply.text.substr(0, reply.text.find(' '));
  return absl::UnavailableError(
      absl::StrCat("the shared store refuses the login: ",
                   absl::CHexEscape(word.substr(0, kMaxErrorText))));
}

}  // namespace pando
