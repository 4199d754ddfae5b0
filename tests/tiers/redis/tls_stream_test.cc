#include "tiers/redis/tls_stream.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "os/monotonic_clock.h"

namespace pando {
namespace {

constexpr char kHost[] = "127.0.0.1";

absl::Time Late() { return MonotonicNow() + absl::Minutes(2); }
absl::Time Soon() { return MonotonicNow() + absl::Milliseconds(20); }

// A key, and a certificate for kHost that this key has signed.
class Certificate {
 public:
  Certificate() : key_(EVP_EC_gen("P-256")), certificate_(X509_new()) {
    X509_set_version(certificate_, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate_), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate_), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate_), 3600);
    X509_set_pubkey(certificate_, key_);
    X509_NAME* const name = X509_get_subject_name(certificate_);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("test"),
                               -1, -1, 0);
    X509_set_issuer_name(certificate_, name);
    X509_EXTENSION* const names = X509V3_EXT_conf_nid(
        nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1");
    X509_add_ext(certificate_, names, -1);
    X509_EXTENSION_free(names);
    EXPECT_GT(X509_sign(certificate_, key_, EVP_sha256()), 0);
  }
  ~Certificate() {
    X509_free(certificate_);
    EVP_PKEY_free(key_);
  }
  Certificate(const Certificate&) = delete;
  Certificate& operator=(const Certificate&) = delete;

  void WriteTo(const std::string& path) const {
    FILE* const file = fopen(path.c_str(), "w");
    PEM_write_X509(file, certificate_);
    fclose(file);
  }
  void UseIn(SSL_CTX* context) const {
    EXPECT_EQ(SSL_CTX_use_certificate(context, certificate_), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(context, key_), 1);
  }

 private:
  EVP_PKEY* const key_;
  X509* const certificate_;
};

// The server's end of a connection. All calls block.
class Peer {
 public:
  Peer(SSL_CTX* context, int fd) : ssl_(SSL_new(context)), fd_(fd) {
    SSL_set_fd(ssl_, fd);
  }
  ~Peer() { SSL_free(ssl_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  bool Accept() { return SSL_accept(ssl_) == 1; }
  void Write(const std::string& text) {
    size_t bytes = 0;
    EXPECT_EQ(SSL_write_ex(ssl_, text.data(), text.size(), &bytes), 1);
  }
  // Writes bytes to the socket without TLS.
  void WriteRaw(const std::string& text) {
    EXPECT_EQ(send(fd_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // Reads until `count` bytes have come or the connection ends.
  std::string Read(size_t count) {
    std::string text(count, 0);
    size_t done = 0;
    size_t bytes = 0;
    while (done < count &&
           SSL_read_ex(ssl_, text.data() + done, count - done, &bytes) == 1) {
      done += bytes;
    }
    text.resize(done);
    return text;
  }
  void SayGoodbye() { SSL_shutdown(ssl_); }
  SSL* ssl() { return ssl_; }

 private:
  SSL* const ssl_;
  const int fd_;
};

class TlsStreamTest : public testing::Test {
 protected:
  TlsStreamTest()
      : folder_(std::filesystem::temp_directory_path() /
                absl::StrCat("tls_stream_test.", getpid())),
        server_context_(SSL_CTX_new(TLS_server_method())) {
    std::signal(SIGPIPE, SIG_IGN);  // as pandod does
    std::filesystem::create_directory(folder_);
    certificate_.UseIn(server_context_.get());
    client_context_ = TrustOf(certificate_);
  }
  ~TlsStreamTest() override {
    Join();
    std::filesystem::remove_all(folder_);
  }

  // Returns the context of a client that trusts only this certificate.
  SslContext TrustOf(const Certificate& certificate) {
    const std::string path = folder_ / "ca.pem";
    certificate.WriteTo(path);
    auto context = MakeSslContext({.ca = path, .certificate = "", .key = ""});
    EXPECT_TRUE(context.ok()) << context.status();
    return *std::move(context);
  }

  // Connects to a server that calls `serve` in a thread and then closes the
  // connection.
  absl::StatusOr<std::unique_ptr<TlsStream>> Open(
      std::function<void(Peer&)> serve, const std::string& host = kHost,
      absl::Time deadline = Late()) {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    // With a small buffer, a large value takes many writes.
    const int bytes = 4096;
    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    EXPECT_EQ(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    server_ =
        std::thread([this, fd = UniqueFd(fds[1]), serve = std::move(serve)] {
          Peer peer(server_context_.get(), fd.get());
          serve(peer);
        });
    return TlsStream::Open(client_context_.get(), UniqueFd(fds[0]), host,
                           deadline);
  }
  // Connects like Open, but the server completes the handshake before `serve`.
  std::unique_ptr<TlsStream> Connect(std::function<void(Peer&)> serve) {
    auto stream = Open([serve = std::move(serve)](Peer& peer) {
      ASSERT_TRUE(peer.Accept());
      serve(peer);
    });
    EXPECT_TRUE(stream.ok()) << stream.status();
    return *std::move(stream);
  }
  void Join() {
    if (server_.joinable()) server_.join();
  }

  static absl::StatusOr<std::string> Read(TlsStream& stream, size_t count,
                                          absl::Time deadline = Late()) {
    std::string text;
    while (text.size() < count) {
      char part[7];
      const absl::StatusOr<size_t> bytes =
          stream.Read(std::as_writable_bytes(std::span(part)), deadline);
      if (!bytes.ok()) return bytes.status();
      text.append(part, *bytes);
    }
    return text;
  }

  const Certificate certificate_;
  const std::filesystem::path folder_;
  SslContext server_context_;
  SslContext client_context_;
  std::thread server_;
};

iovec PartOf(std::string& text) { return {text.data(), text.size()}; }

TEST_F(TlsStreamTest, AllPartsArriveThoughTheSocketTakesThemInPieces) {
  std::string head = "head";
  std::string none;
  std::string body(3'000'000, 'x');
  for (size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i % 251);
  std::string tail = "tail";
  std::string received;
  const auto stream = Connect([&](Peer& peer) {
    received = peer.Read(head.size() + body.size() + tail.size());
  });
  EXPECT_TRUE(
      stream
          ->Write({PartOf(head), PartOf(none), PartOf(body), PartOf(tail)},
                  Late())
          .ok());
  Join();
  EXPECT_TRUE(received == head + body + tail);
}

TEST_F(TlsStreamTest, AWriteThatNobodyReadsEndsAtItsDeadline) {
  std::string body(3'000'000, 'x');
  std::string go = "g";
  int gate[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, gate), 0);
  const auto stream = Connect([&](Peer&) {
    char ignored;
    EXPECT_EQ(read(gate[1], &ignored, 1), 1);
  });
  EXPECT_TRUE(absl::IsDeadlineExceeded(stream->Write({PartOf(body)}, Soon())));
  EXPECT_EQ(write(gate[0], go.data(), 1), 1);
  Join();
  close(gate[0]);
  close(gate[1]);
}

TEST_F(TlsStreamTest, WhatIsDecryptedButNotReadIsNotQuiet) {
  const auto stream = Connect([](Peer& peer) {
    peer.Write("0123456789");
    EXPECT_EQ(peer.Read(1), "k");
  });
  EXPECT_EQ(*Read(*stream, 7), "0123456");
  EXPECT_FALSE(stream->IsQuiet());
  std::string key = "k";
  EXPECT_TRUE(stream->Write({PartOf(key)}, Late()).ok());
  EXPECT_EQ(*Read(*stream, 3), "789");
}

TEST_F(TlsStreamTest, AReadWithoutAnAnswerEndsAtItsDeadline) {
  const auto stream = Connect([](Peer& peer) { peer.Read(1); });
  EXPECT_TRUE(absl::IsDeadlineExceeded(Read(*stream, 1, Soon()).status()));
  std::string end = "e";
  EXPECT_TRUE(stream->Write({PartOf(end)}, Late()).ok());
}

TEST_F(TlsStreamTest, AServerThatDoesNotShakeHandsIsGivenUp) {
  const auto stream = Open(
      [](Peer& peer) {
        char ignored;
        while (recv(SSL_get_fd(peer.ssl()), &ignored, 1, 0) > 0) continue;
      },
      kHost, Soon());
  EXPECT_TRUE(absl::IsDeadlineExceeded(stream.status())) << stream.status();
}

TEST_F(TlsStreamTest, AServerThatSpeaksNoTlsIsRefused) {
  const auto stream =
      Open([](Peer& peer) { peer.WriteRaw("-ERR this is no TLS\r\n"); });
  EXPECT_TRUE(absl::IsUnavailable(stream.status())) << stream.status();
}

TEST_F(TlsStreamTest, ACertificateForAnotherHostIsRefused) {
  for (const char* const host : {"127.0.0.2", "pando.example"}) {
    const auto stream = Open([](Peer& peer) { peer.Accept(); }, host);
    EXPECT_TRUE(absl::IsUnavailable(stream.status())) << stream.status();
    Join();
  }
}

TEST_F(TlsStreamTest, ACertificateOfAnotherAuthorityIsRefused) {
  const Certificate other;
  client_context_ = TrustOf(other);
  const auto stream = Open([](Peer& peer) { peer.Accept(); });
  EXPECT_TRUE(absl::IsUnavailable(stream.status())) << stream.status();
}

TEST_F(TlsStreamTest, BytesThatAreNoRecordEndTheConnection) {
  const auto stream = Connect([](Peer& peer) {
    peer.Write("good");
    peer.WriteRaw(std::string(64, '!'));
  });
  EXPECT_EQ(*Read(*stream, 4), "good");
  EXPECT_TRUE(absl::IsUnavailable(Read(*stream, 1).status()));
}

TEST_F(TlsStreamTest, TheEndIsAnErrorWithOrWithoutAGoodbye) {
  for (const bool says_goodbye : {false, true}) {
    const auto stream = Connect([=](Peer& peer) {
      peer.Write("last");
      if (says_goodbye) peer.SayGoodbye();
    });
    Join();
    EXPECT_FALSE(stream->IsQuiet());
    EXPECT_EQ(*Read(*stream, 4), "last");
    EXPECT_TRUE(absl::IsUnavailable(Read(*stream, 1).status()));
  }
}

TEST_F(TlsStreamTest, AWriteToAServerThatHasLeftIsAnError) {
  const auto stream = Connect([](Peer&) {});
  Join();
  std::string body(1'000'000, 'x');
  EXPECT_TRUE(absl::IsUnavailable(stream->Write({PartOf(body)}, Late())));
}

// Returns the last message of the client's handshake.
std::string FinishedOf(SSL* ssl) {
  std::string message(EVP_MAX_MD_SIZE, 0);
  message.resize(SSL_get_peer_finished(ssl, message.data(), message.size()));
  return message;
}

TEST_F(TlsStreamTest, ARenegotiationIsRefused) {
  SSL_CTX_set_max_proto_version(server_context_.get(), TLS1_2_VERSION);
  std::string first;
  std::string last;
  auto stream = Connect([&](Peer& peer) {
    first = FinishedOf(peer.ssl());
    EXPECT_EQ(SSL_renegotiate(peer.ssl()), 1);
    EXPECT_EQ(SSL_do_handshake(peer.ssl()), 1);  // asks for a handshake
    peer.Write("x");
    EXPECT_EQ(peer.Read(1), "");
    last = FinishedOf(peer.ssl());
  });
  EXPECT_EQ(*Read(*stream, 1), "x");
  EXPECT_TRUE(absl::IsUnavailable(Read(*stream, 1).status()));
  stream.reset();
  Join();
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(last, first);
}

}  // namespace
}  // namespace pando
