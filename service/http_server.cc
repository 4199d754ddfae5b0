#include "service/http_server.h"

#include <civetweb.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <chrono>
#include <future>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace pando {
namespace {

constexpr std::chrono::milliseconds kStopPoll{20};

constexpr char kPlainText[] = "text/plain; charset=utf-8";
constexpr char kMetricsText[] = "text/plain; version=0.0.4; charset=utf-8";

// civetweb explains a failed start only in its log, on the starting thread, and
// names the cause first.
thread_local std::string first_log_message;

int KeepLogMessage(const mg_connection*, const char* message) {
  if (first_log_message.empty()) first_log_message = message;
  return 1;
}

int Reply(mg_connection* connection, int status, const char* content_type,
          const std::string& body) {
  const std::string head = absl::StrFormat(
      "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %u\r\n"
      "Cache-Control: no-store\r\nConnection: close\r\n\r\n",
      status, mg_get_response_code_text(connection, status), content_type,
      body.size());
  mg_write(connection, head.data(), head.size());
  mg_write(connection, body.data(), body.size());
  return status;
}

int PortOf(const mg_context* context) {
  mg_server_port port = {};
  mg_get_server_ports(context, 1, &port);
  return port.port;
}

// The host to connect to of a server that listens on `address`.
std::string ConnectableHost(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  return host == "0.0.0.0" || host == "[::]" ? "127.0.0.1" : host;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(Config config) {
  std::unique_ptr<HttpServer> server =
      absl::WrapUnique(new HttpServer(std::move(config)));
  const std::string& address = server->config_.address;
  const char* options[] = {
      "listening_ports",    address.c_str(), "num_threads", "2",
      "request_timeout_ms", "2000",          nullptr};
  mg_callbacks callbacks = {};
  callbacks.begin_request = HandleRequest;
  callbacks.log_message = KeepLogMessage;
  first_log_message.clear();
  server->context_ = {mg_start(&callbacks, server.get(), options),
                      StopContext{ConnectableHost(address)}};
  if (server->context_ == nullptr) {
    return absl::UnavailableError(absl::StrFormat("cannot serve http on %s: %s",
                                                  address, first_log_message));
  }
  return server;
}

// civetweb waits two seconds for connections before it looks whether it is to
// stop; one of our own ends the wait.
void HttpServer::StopContext::operator()(mg_context* context) const {
  const int port = PortOf(context);
  const auto stopped =
      std::async(std::launch::async, [context] { mg_stop(context); });
  while (stopped.wait_for(kStopPoll) != std::future_status::ready) {
    char error[64];
    mg_close_connection(
        mg_connect_client(host.c_str(), port, 0, error, sizeof error));
  }
}

int HttpServer::port() const { return PortOf(context_.get()); }

int HttpServer::HandleRequest(mg_connection* connection) {
  const auto* server = static_cast<const HttpServer*>(
      mg_get_user_data(mg_get_context(connection)));
  return server->Respond(connection);
}

int HttpServer::Respond(mg_connection* connection) const {
  const mg_request_info* request = mg_get_request_info(connection);
  if (std::string_view(request->request_method) != "GET") {
    return Reply(connection, 405, kPlainText, "only GET is allowed\n");
  }
  const std::string_view path = request->local_uri;
  if (path == "/metrics") {
    return Reply(connection, 200, kMetricsText, Metrics());
  }
  if (path == "/healthz") return Reply(connection, 200, kPlainText, "ok\n");
  if (path == "/readyz") {
    return config_.is_ready()
               ? Reply(connection, 200, kPlainText, "ok\n")
               : Reply(connection, 503, kPlainText, "not ready\n");
  }
  return Reply(connection, 404, kPlainText,
               "not found; try /metrics, /healthz, /readyz\n");
}

std::string HttpServer::Metrics() const {
  std::vector<prometheus::MetricFamily> families;
  for (const auto& collectable : config_.collectables) {
    std::vector<prometheus::MetricFamily> collected = collectable->Collect();
    std::move(collected.begin(), collected.end(), std::back_inserter(families));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace pando
