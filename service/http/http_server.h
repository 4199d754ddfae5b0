#ifndef PANDO_SERVICE_HTTP_HTTP_SERVER_H_
#define PANDO_SERVICE_HTTP_HTTP_SERVER_H_

#include <prometheus/collectable.h>

#include <cstddef>
#include <functional>
#include <memory>
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
//                  asks by a name that is not the server's
// Owned by Server. Its threads call the collectables, is_ready and the console,
// at the same time too; nothing is called after destruction.
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
  HttpReply Reply(mg_connection* connection) const;
  HttpReply AnswerConsole(mg_connection* connection) const;
  HttpReply Answer(std::string_view method, std::string_view path) const;
  std::string Metrics() const;

  const Config config_;
  const ServedHosts hosts_;
  // Last, so that its threads are gone before what they use.
  std::unique_ptr<mg_context, StopContext> context_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_HTTP_HTTP_SERVER_H_
