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
#include "service/http/http_message.h"
#include "service/http/served_hosts.h"

struct mg_connection;
struct mg_context;

namespace pando {

// What operators look at over HTTP:
//   GET /metrics   all metrics in the text format of Prometheus
//   GET /healthz   200 while the process lives
//   GET /readyz    200 when it can serve, 503 when it cannot
//   /console/...   what the console answers, if there is one; 403 to whoever
//                  asks by a name that is not the server's, or for a page of
//                  another server; 401 to whoever shows no token that is wanted
// Most of its threads serve no requests for the console, however many there are
// and however slowly their bodies come: metrics and probes do not wait for
// them. Owned by Server. Its threads call the collectables, is_ready, admits
// and the console, at the same time too; nothing is called after destruction.
class HttpServer {
 public:
  struct Config {
    // host:port; port 0 takes any free one.
    std::string address;
    // Other names by which the console may be asked.
    std::vector<std::string> hosts = {};
    std::vector<std::shared_ptr<const prometheus::Collectable>> collectables;
    std::function<bool()> is_ready;
    // Null: there is none. Bodies are no longer than this many bytes.
    std::function<HttpReply(const HttpRequest&)> console = nullptr;
    size_t max_body_bytes = 0;
    // Whether somebody with this bearer token, empty if none, may ask the
    // console. Null: everybody may.
    std::function<bool(const std::string& token)> admits = nullptr;
  };

  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(Config config);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // The port it listens on.
  int port() const;

 private:
  struct StopContext {
    std::string host;  // where it can be connected to
    void operator()(mg_context* context) const;
  };

  explicit HttpServer(Config config)
      : config_(std::move(config)), hosts_(config_.address, config_.hosts) {}

  static int HandleRequest(mg_connection* connection);
  int Respond(mg_connection* connection) const;
  int RespondConsole(mg_connection* connection) const;
  HttpReply AnswerConsole(mg_connection* connection) const;
  // Whoever may not ask gets this; none: he may.
  std::optional<HttpReply> Refusal(mg_connection* connection) const;
  HttpReply Answer(std::string_view method, std::string_view path) const;
  std::string Metrics() const;

  const Config config_;
  const ServedHosts hosts_;
  mutable std::atomic<int> console_requests_ = 0;  // that are being served
  // Last, so that its threads are gone before what they use.
  std::unique_ptr<mg_context, StopContext> context_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_HTTP_HTTP_SERVER_H_
