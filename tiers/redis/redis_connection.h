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

// Who calls. The file is read for each connection, so that passwords can be
// changed; empty: there is none.
struct RedisLogin {
  std::string user;
  std::string password_file;
  SslContext tls;  // null without
};

// A connection to a server that knows who calls. After an error it is of no
// use. Owned by RedisNodes, or by who took it from there; not thread-safe.
class RedisConnection {
 public:
  // `login` outlives it.
  static absl::StatusOr<std::unique_ptr<RedisConnection>> Open(
      const RedisAddress& address, const RedisLogin& login,
      absl::Time deadline);

  absl::Status Send(std::vector<iovec> requests, absl::Time deadline) {
    return stream_->Write(std::move(requests), deadline);
  }
  // The replies to the commands that were sent, in their order.
  RespReader& replies() { return replies_; }
  // Whether it can be used again: the server has not closed it, and has sent
  // nothing that was not asked for.
  bool IsQuiet() const { return replies_.is_empty() && stream_->IsQuiet(); }

 private:
  explicit RedisConnection(std::unique_ptr<ByteStream> stream)
      : stream_(std::move(stream)), replies_(stream_.get()) {}

  absl::Status LogIn(const RedisLogin& login, absl::Time deadline);

  const std::unique_ptr<ByteStream> stream_;
  RespReader replies_;
};

// The error that a server says, shortened, without what is no text.
absl::Status ErrorOf(const RespReply& reply);

}  // namespace pando

#endif  // PANDO_TIERS_REDIS_REDIS_CONNECTION_H_
