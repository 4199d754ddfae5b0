#include "tiers/redis/tls_stream.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>

#include <array>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tiers/redis/socket_stream.h"

namespace pando {
namespace {

// Returns the text of OpenSSL's last error, and clears its list of errors.
std::string LastTlsError() {
  std::array<char, 256> text = {};
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  if (error == 0) return "the connection was closed";
  ERR_error_string_n(error, text.data(), text.size());
  return text.data();
}

absl::Status BadTlsFile(const char* option, const std::string& path) {
  return absl::InvalidArgumentError(absl::StrCat(
      "a ", option, " that cannot be used, ", path, ": ", LastTlsError()));
}

absl::Status TlsFailed(const char* what) {
  return absl::UnavailableError(
      absl::StrCat("the shared store: ", what, ": ", LastTlsError()));
}

bool ExpectServer(SSL* ssl, const std::string& host) {
  std::array<std::byte, sizeof(in6_addr)> bytes;
  if (inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
      inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1) {
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) ==
           1;
  }
  return SSL_set_tlsext_host_name(ssl, host.c_str()) == 1 &&
         SSL_set1_host(ssl, host.c_str()) == 1;
}

}  // namespace

absl::StatusOr<SslContext> MakeSslContext(const RedisTlsFiles& files) {
  ERR_clear_error();
  SslContext context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr ||
      SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1) {
    return TlsFailed("begin with TLS");
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  // No server needs renegotiation, and TLS 1.3 has none.
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_AUTO_RETRY);
  // A key with a passphrase is refused. Without this callback OpenSSL would ask
  // for it on the terminal.
  SSL_CTX_set_default_passwd_cb(context.get(),
                                [](char*, int, int, void*) { return 0; });
  if (files.ca.empty()) {
    SSL_CTX_set_default_verify_paths(context.get());
  } else if (SSL_CTX_load_verify_locations(context.get(), files.ca.c_str(),
                                           nullptr) != 1) {
    return BadTlsFile("ca", files.ca);
  }
  if (files.certificate.empty()) return context;
  if (SSL_CTX_use_certificate_chain_file(context.get(),
                                         files.certificate.c_str()) != 1) {
    return BadTlsFile("certificate", files.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(),
                                  SSL_FILETYPE_PEM) != 1) {
    return BadTlsFile("key", files.key);
  }
  return context;
}

absl::StatusOr<std::unique_ptr<TlsStream>> TlsStream::Open(
    SSL_CTX* context, UniqueFd fd, const std::string& host,
    absl::Time deadline) {
  const int socket = fd.get();
  auto stream =
      absl::WrapUnique(new TlsStream(SSL_new(context), std::move(fd)));
  SSL* const ssl = stream->ssl_.get();
  ERR_clear_error();
  if (ssl == nullptr || SSL_set_fd(ssl, socket) != 1 ||
      !ExpectServer(ssl, host)) {
    return TlsFailed("begin with TLS");
  }
  int result = 0;
  while ((result = SSL_connect(ssl)) != 1) {
    RETURN_IF_ERROR(stream->Await(result, deadline));
  }
  return stream;
}

absl::Status TlsStream::Await(int result, absl::Time deadline) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return AwaitSocket(fd_.get(), POLLIN, deadline);
    case SSL_ERROR_WANT_WRITE:
      return AwaitSocket(fd_.get(), POLLOUT, deadline);
    default:
      return TlsFailed("TLS");
  }
}

absl::StatusOr<size_t> TlsStream::Read(std::span<std::byte> into,
                                       absl::Time deadline) {
  while (true) {
    ERR_clear_error();
    size_t bytes = 0;
    const int result =
        SSL_read_ex(ssl_.get(), into.data(), into.size(), &bytes);
    if (result == 1) return bytes;
    RETURN_IF_ERROR(Await(result, deadline));
  }
}

absl::Status TlsStream::Write(std::vector<iovec> parts, absl::Time deadline) {
  for (iovec part : parts) {
    while (part.iov_len > 0) {
      ERR_clear_error();
      size_t bytes = 0;
      const int result =
          SSL_write_ex(ssl_.get(), part.iov_base, part.iov_len, &bytes);
      if (result != 1) {
        RETURN_IF_ERROR(Await(result, deadline));
        continue;
      }
      part.iov_base = static_cast<std::byte*>(part.iov_base) + bytes;
      part.iov_len -= bytes;
    }
  }
  return absl::OkStatus();
}

bool TlsStream::IsQuiet() const {
  return SSL_pending(ssl_.get()) == 0 && IsSocketQuiet(fd_.get());
}

}  // namespace pando
