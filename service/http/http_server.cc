#include "service/http/http_server.h"

#include <civetweb.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <prometheus/metric_family.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <future>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "os/monotonic_clock.h"
#include "service/http/shown_token.h"
#include "service/http/text_format.h"

namespace pando {
namespace {

constexpr std::chrono::milliseconds kStopPoll{20};

// The number of threads, and how many of them may serve the console. Browsers
// keep connections open that they may need later: each takes a thread until it
// is used or its time is over. A browser asks for six parts of the page at a
// time, and has read a reply before the thread that sent it is done. So the
// threads must suffice for a few browsers that load the page at once.
constexpr char kThreads[] = "64";
constexpr int kConsoleThreads = 40;

// How long a connection may stand still. A browser on a busy machine may
// connect, and ask or read only seconds later.
constexpr char kStandstillMs[] = "10000";

// mg_read returns only once it has read this many bytes, so only between two
// chunks can the server notice that a body comes too slowly.
constexpr size_t kBodyChunk = 256;
constexpr absl::Duration kBodyTime = absl::Seconds(10);

constexpr char kPlainText[] = "text/plain; charset=utf-8";
constexpr char kMetricsText[] = "text/plain; version=0.0.4; charset=utf-8";

// civetweb explains a failed start only in its log, on the starting thread, and
// names the cause first.
thread_local std::string first_log_message;

int KeepLogMessage(const mg_connection*, const char* message) {
  if (first_log_message.empty()) first_log_message = message;
  return 1;
}

void Send(mg_connection* connection, const HttpReply& reply) {
  std::string head = absl::StrFormat(
      "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %u\r\n"
      "Cache-Control: no-store\r\nConnection: close\r\n",
      reply.status, mg_get_response_code_text(connection, reply.status),
      reply.content_type, reply.body.size());
  for (const auto& [name, value] : reply.headers) {
    absl::StrAppend(&head, name, ": ", value, "\r\n");
  }
  head += "\r\n";
  mg_write(connection, head.data(), head.size());
  mg_write(connection, reply.body.data(), reply.body.size());
}

// Reads `size` bytes. Returns none if they do not come within kBodyTime.
std::optional<std::string> ReadBody(mg_connection* connection, size_t size) {
  const absl::Time deadline = MonotonicNow() + kBodyTime;
  std::string body;
  char chunk[kBodyChunk];
  while (body.size() < size) {
    const int got =
        mg_read(connection, chunk, std::min(size - body.size(), kBodyChunk));
    if (got <= 0 || MonotonicNow() > deadline) return std::nullopt;
    body.append(chunk, static_cast<size_t>(got));
  }
  return body;
}

// The addresses for civetweb to listen at. civetweb cannot be given a listening
// socket: it binds its own. So it binds one for each of ours, at any port of
// this machine; BeginThread puts ours in their place before anything is
// accepted.
std::string PlacesFor(const TcpListener& listener) {
  return absl::StrJoin(
      std::vector<std::string>(listener.sockets().size(), "127.0.0.1:0"), ",");
}

// Returns the port if the descriptor is a socket that listens to callers of
// this machine alone, else 0.
int LocalPortOf(int descriptor) {
  int listens = 0;
  socklen_t size = sizeof(listens);
  getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size);
  sockaddr_in address = {};
  size = sizeof(address);
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
  const bool is_local = address.sin_family == AF_INET &&
                        address.sin_addr.s_addr == htonl(INADDR_LOOPBACK);
  return listens == 1 && is_local ? ntohs(address.sin_port) : 0;
}

// Returns the descriptors of the sockets that civetweb has bound. civetweb
// tells only their ports, so the open descriptors are searched for them.
std::vector<int> PlacesIn(const mg_context* context, size_t count) {
  std::vector<mg_server_port> bound(count);
  mg_get_server_ports(context, static_cast<int>(count), bound.data());
  std::vector<int> places;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    const int port = LocalPortOf(fd);
    if (port != 0 && std::ranges::count(bound, port, &mg_server_port::port) > 0)
      places.push_back(fd);
  }
  return places;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(Config config) {
  ASSIGN_OR_RETURN(std::unique_ptr<TcpListener> listener,
                   TcpListener::Start(config.socket));
  const std::string places = PlacesFor(*listener);
  std::unique_ptr<HttpServer> server =
      absl::WrapUnique(new HttpServer(std::move(config), std::move(listener)));
  const char* options[] = {
      "listening_ports",    places.c_str(), "num_threads", kThreads,
      "request_timeout_ms", kStandstillMs,  nullptr};
  mg_callbacks callbacks = {};
  callbacks.begin_request = HandleRequest;
  callbacks.init_thread = BeginThread;
  callbacks.log_message = KeepLogMessage;
  first_log_message.clear();
  server->context_ = {mg_start(&callbacks, server.get(), options),
                      StopContext{server->listener_.get()}};
  if (server->context_ == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve http: ", first_log_message));
  }
  return server;
}

void* HttpServer::BeginThread(const mg_context* context, int thread_type) {
  constexpr int kAccepting = 0;  // the thread that polls the sockets
  if (thread_type != kAccepting) return nullptr;
  const auto& ours = static_cast<const HttpServer*>(mg_get_user_data(context))
                         ->listener_->sockets();
  const std::vector<int> places = PlacesIn(context, ours.size());
  CHECK(places.size() == ours.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    CHECK(dup3(ours[i].get(), places[i], O_CLOEXEC) >= 0);
  }
  return nullptr;
}

// civetweb waits up to two seconds for a connection before it checks whether it
// must stop. A connection of our own ends the wait.
void HttpServer::StopContext::operator()(mg_context* context) const {
  const auto stopped =
      std::async(std::launch::async, [context] { mg_stop(context); });
  UniqueFd caller;
  while (stopped.wait_for(kStopPoll) != std::future_status::ready) {
    caller = listener->Connect();
  }
}

int HttpServer::HandleRequest(mg_connection* connection) {
  const auto* server = static_cast<const HttpServer*>(
      mg_get_user_data(mg_get_context(connection)));
  return server->Respond(connection);
}

int HttpServer::Respond(mg_connection* connection) const {
  const mg_request_info* request = mg_get_request_info(connection);
  const std::string_view path = request->local_uri;
  if (config_.console != nullptr &&
      (path == "/console" || path.starts_with("/console/"))) {
    return RespondConsole(connection);
  }
  const HttpReply reply = Answer(request->request_method, path);
  Send(connection, reply);
  return reply.status;
}

int HttpServer::RespondConsole(mg_connection* connection) const {
  const bool is_too_much = ++console_requests_ > kConsoleThreads;
  const absl::Cleanup done = [this] { --console_requests_; };
  const HttpReply reply =
      is_too_much ? HttpReply{503, kPlainText, "the console is busy\n"}
                  : AnswerConsole(connection);
  Send(connection, reply);
  return reply.status;
}

HttpReply HttpServer::AnswerConsole(mg_connection* connection) const {
  if (std::optional<HttpReply> refusal = Refusal(connection)) return *refusal;
  const mg_request_info* info = mg_get_request_info(connection);
  const auto size = static_cast<uint64_t>(std::max(info->content_length, 0LL));
  if (size > config_.max_body_bytes) {
    return {413, kPlainText,
            absl::StrFormat("the body has %u bytes; the limit is %u\n", size,
                            config_.max_body_bytes)};
  }
  std::optional<std::string> body = ReadBody(connection, size);
  if (!body.has_value()) {
    return {408, kPlainText, "the body did not come in time\n"};
  }
  return config_.console(
      {.method = info->request_method,
       .path = info->local_uri,
       .query = info->query_string == nullptr ? "" : info->query_string,
       .body = *std::move(body)});
}

std::optional<HttpReply> HttpServer::Refusal(mg_connection* connection) const {
  // HTTP/1.0 knows no such header; browsers always send one.
  const char* const host = mg_get_header(connection, "Host");
  if (host != nullptr && !hosts_.Include(host)) {
    return HttpReply{403, kPlainText,
                     "not asked by a name of this server; see --http-hosts\n"};
  }
  const char* const origin = mg_get_header(connection, "Origin");
  if (origin != nullptr && !hosts_.IncludeOrigin(origin)) {
    return HttpReply{403, kPlainText, "asked for a page of another server\n"};
  }
  if (config_.admits == nullptr) return std::nullopt;
  const char* const authorization = mg_get_header(connection, "Authorization");
  if (config_.admits(
          ShownToken(authorization == nullptr ? "" : authorization))) {
    return std::nullopt;
  }
  return HttpReply{
      .status = 401,
      .content_type = kPlainText,
      .body =
          "the console needs a bearer token of a credential that may read "
          "all namespaces; browsers take it as the password\n",
      .headers = {{"WWW-Authenticate", "Basic realm=\"pando\""}}};
}

HttpReply HttpServer::Answer(std::string_view method,
                             std::string_view path) const {
  if (method != "GET") return {405, kPlainText, "only GET is allowed\n"};
  if (path == "/metrics") return {200, kMetricsText, Metrics()};
  if (path == "/healthz") return {200, kPlainText, "ok\n"};
  if (path == "/readyz") {
    if (config_.is_ready()) return {200, kPlainText, "ok\n"};
    return {503, kPlainText, "not ready\n"};
  }
  return {404, kPlainText,
          absl::StrCat("not found; try /metrics, /healthz, /readyz",
                       config_.console != nullptr ? ", /console/\n" : "\n")};
}

std::string HttpServer::Metrics() const {
  std::vector<prometheus::MetricFamily> families;
  for (const auto& collectable : config_.collectables) {
    std::vector<prometheus::MetricFamily> collected = collectable->Collect();
    std::move(collected.begin(), collected.end(), std::back_inserter(families));
  }
  return MetricsText(families);
}

}  // namespace pando
