#ifndef PANDO_SERVICE_HTTP_HTTP_SERVER_H_
#define PANDO_SERVICE_HTTP_HTTP_SERVER_H_

#include <prometheus/collectable.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "os/sockets/tcp_listener.h"
#include "service/http/http_message.h"
#include "service/http/served_hosts.h"

struct mg_connection;
struct mg_context;

namespace pando {

// Serves operators over HTTP:
//   GET /metrics   all metrics in the text format of Prometheus
//   GET /healthz   200 while the process lives
//   GET /readyz    200 when it can serve, 503 when it cannot
//   /console/...   the console, if there is one; 403 for a Host that is not
//                  this server's name or an Origin of another page; 401 without
//                  a token where one is needed
//
// Only a part of its threads serves the console, however many requests there
// are and however slowly their bodies arrive. So metrics and probes never wait
// for the console.
//
// Owned by Server. Its threads call the collectables, is_ready, admits and the
// console, also concurrently; they call nothing after destruction.
class HttpServer {
 public:
  struct Config {
    // Where to listen. Port 0 takes any free port.
    TcpSocket socket;
    // Further host names that the console answers to.
    std::vector<std::string> hosts = {};
    std::vector<std::shared_ptr<const prometheus::Collectable>> collectables;
    std::function<bool()> is_ready;
    // Answers requests for the console; null if there is none. It gets bodies
    // of at most max_body_bytes.
    std::function<HttpReply(const HttpRequest&)> console = nullptr;
    size_t max_body_bytes = 0;
    // Returns whether a caller with this bearer token may use the console; the
    // token is empty if the caller showed none. If this is null, every caller
    // may use it.
    std::function<bool(const std::string& token)> admits = nullptr;
  };

  // Starts the server, or returns why it cannot listen at the address.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(Config config);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Returns the port that it listens on.
  int port() const { return listener_->port(); }

 private:
  struct StopContext {
    const TcpListener* listener;
    void operator()(mg_context* context) const;
  };

  HttpServer(Config config, std::unique_ptr<TcpListener> listener)
      : config_(std::move(config)),
        listener_(std::move(listener)),
        hosts_(config_.socket.address, config_.hosts) {}

  // civetweb calls this on each of its threads as the thread begins.
  static void* BeginThread(const mg_context* context, int thread_type);
  static int HandleRequest(mg_connection* connection);
  int Respond(mg_connection* connection) const;
  int RespondConsole(mg_connection* connection) const;
  HttpReply AnswerConsole(mg_connection* connection) const;
  // Returns the reply to a caller who may not use the console, or none if the
  // caller may.
  std::optional<HttpReply> Refusal(mg_connection* connection) const;
  HttpReply Answer(std::string_view method, std::string_view path) const;
  std::string Metrics() const;

  const Config config_;
  const std::unique_ptr<TcpListener> listener_;
  const ServedHosts hosts_;
  mutable std::atomic<int> console_requests_ = 0;  // now being served
  // It is the last member, so that its threads have ended before what they use
  // is destroyed.
  std::unique_ptr<mg_context, StopContext> context_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_HTTP_HTTP_SERVER_H_
