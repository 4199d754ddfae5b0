#ifndef PANDO_TIERS_REDIS_REDIS_CONNECTION_H_
#define PANDO_TIERS_REDIS_REDIS_CONNECTION_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tiers/redis/byte_stream.h"
#include "tiers/redis/redis_address.h"
#include "tiers/redis/resp_reader.h"
#include "tiers/redis/resp_request.h"
#include "tiers/redis/tls_stream.h"

namespace pando {

// The credentials of this client. The password file is read for each new
// connection, so that the password can be changed. An empty `password_file`
// means that there is no password.
struct RedisLogin {
  std::string user;
  std::string password_file;
  SslContext tls;  // null without TLS
};

// A connection to a server, on which this client has logged in. After an error
// it must not be used any more. Owned by RedisNodes, or by the caller that took
// it from there. Not thread-safe.
class RedisConnection {
 public:
  // Connects and logs in. `login` must outlive the connection.
  static absl::StatusOr<std::unique_ptr<RedisConnection>> Open(
      const RedisAddress& address, const RedisLogin& login,
      absl::Time deadline);

  absl::Status Send(std::vector<iovec> requests, absl::Time deadline) {
    return stream_->Write(std::move(requests), deadline);
  }
  // The replies to the commands that were sent, in their order.
  RespReader& replies() { return replies_; }
  // Returns whether the connection can be used again: the server has not closed
  // it, and has sent nothing that was not asked for.
  bool IsQuiet() const { return replies_.is_empty() && stream_->IsQuiet(); }

 private:
  explicit RedisConnection(std::unique_ptr<ByteStream> stream)
      : stream_(std::move(stream)), replies_(stream_.get()) {}

  absl::Status LogIn(const RedisLogin& login, absl::Time deadline);

  const std::unique_ptr<ByteStream> stream_;
  RespReader replies_;
};

// Returns the error that a server has replied: RESOURCE_EXHAUSTED if it is out
// of memory, else UNAVAILABLE. The text is shortened and escaped.
absl::Status ErrorOf(const RespReply& reply);

}  // namespace pando

#endif  // PANDO_TIERS_REDIS_REDIS_CONNECTION_H_
