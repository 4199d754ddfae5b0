#ifndef PANDO_TIERS_REDIS_TLS_STREAM_H_
#define PANDO_TIERS_REDIS_TLS_STREAM_H_

#include <openssl/ssl.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "tiers/redis/byte_stream.h"

namespace pando {

// The PEM files of a client.
struct RedisTlsFiles {
  // The authority that signs servers' certificates; empty: the system's.
  std::string ca;
  // This client's certificate, with its chain, and its key; both or none.
  std::string certificate;
  std::string key;
};

struct SslContextDeleter {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using SslContext = std::unique_ptr<SSL_CTX, SslContextDeleter>;

// Makes the context that connections share. An error names the file at fault.
absl::StatusOr<SslContext> MakeSslContext(const RedisTlsFiles& files);

// An encrypted connection. The server must have a certificate for the host name
// or address that the client connected to. Owned by RedisConnection; not
// thread-safe.
class TlsStream final : public ByteStream {
 public:
  // Does the TLS handshake on a connected socket. `context` must outlive the
  // stream.
  static absl::StatusOr<std::unique_ptr<TlsStream>> Open(
      SSL_CTX* context, UniqueFd fd, const std::string& host,
      absl::Time deadline);

  absl::StatusOr<size_t> Read(std::span<std::byte> into,
                              absl::Time deadline) override;
  absl::Status Write(std::vector<iovec> parts, absl::Time deadline) override;
  bool IsQuiet() const override;

 private:
  struct SslDeleter {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  TlsStream(SSL* ssl, UniqueFd fd) : fd_(std::move(fd)), ssl_(ssl) {}

  // Handles the `result` of a call of OpenSSL that did not succeed: waits until
  // the socket is ready. Returns OK if the call is to be made again, else an
  // error.
  absl::Status Await(int result, absl::Time deadline);

  const UniqueFd fd_;
  const std::unique_ptr<SSL, SslDeleter> ssl_;
};

}  // namespace pando

#endif  // PANDO_TIERS_REDIS_TLS_STREAM_H_
