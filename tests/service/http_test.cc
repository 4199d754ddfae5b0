#include <curl/curl.h>
#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "service/http/http_server.h"

namespace pando {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Reply {
  long status = 0;
  std::string content_type;
  std::string body;
};

size_t Append(char* data, size_t size, size_t count, void* body) {
  static_cast<std::string*>(body)->append(data, size * count);
  return size * count;
}

std::shared_ptr<prometheus::Registry> RegistryWith(const std::string& name,
                                                   double value) {
  auto registry = std::make_shared<prometheus::Registry>();
  prometheus::BuildCounter()
      .Name(name)
      .Help("Help of " + name + ".")
      .Register(*registry)
      .Add({{"kind", "a"}})
      .Increment(value);
  return registry;
}

constexpr size_t kMaxBody = 100'000;

// The tests share one server, because a server takes long to stop.
class HttpServerTest : public testing::Test {
 protected:
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const std::string& address) {
    return HttpServer::Start(
        {.socket = {address},
         .collectables = {RegistryWith("pando_first_total", 7),
                          RegistryWith("pando_second_total", 8)},
         .is_ready = [] { return ready_.load(); },
         .console = Echo,
         .max_body_bytes = kMaxBody});
  }

  static HttpReply Echo(const HttpRequest& in) {
    return {.status = 201,
            .content_type = "text/echo",
            .body = in.method + " " + in.path + " " + in.query + " " + in.body,
            .headers = {{"X-Echo", "yes"}}};
  }

  static void SetUpTestSuite() { server_ = Start("127.0.0.1:0").value(); }
  static void TearDownTestSuite() { server_.reset(); }

  static std::string Address() {
    return "127.0.0.1:" + std::to_string(server_->port());
  }

  static Reply Request(const std::string& path, const char* method = "GET",
                       const std::string& body = "") {
    Reply reply;
    const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(
        curl_easy_init(), curl_easy_cleanup);
    const std::string url = "http://" + Address() + path;
    curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl.get(), CURLOPT_CUSTOMREQUEST, method);
    if (!body.empty()) {
      curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE, body.size());
      curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, body.c_str());
    }
    curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, Append);
    curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &reply.body);
    EXPECT_EQ(curl_easy_perform(curl.get()), CURLE_OK);
    curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &reply.status);
    const char* content_type = nullptr;
    curl_easy_getinfo(curl.get(), CURLINFO_CONTENT_TYPE, &content_type);
    if (content_type != nullptr) reply.content_type = content_type;
    return reply;
  }

  static inline std::atomic<bool> ready_ = false;
  static inline std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, MetricsShowsWhatEveryCollectableHas) {
  const Reply reply = Request("/metrics");
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.content_type, StartsWith("text/plain; version=0.0.4"));
  EXPECT_THAT(reply.body, HasSubstr("pando_first_total{kind=\"a\"} 7\n"));
  EXPECT_THAT(reply.body, HasSubstr("pando_second_total{kind=\"a\"} 8\n"));
  EXPECT_THAT(reply.body, HasSubstr("# TYPE pando_second_total counter\n"));
}

TEST_F(HttpServerTest, HealthzIsOkEvenWhenNotReady) {
  const Reply reply = Request("/healthz");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "ok\n");
}

TEST_F(HttpServerTest, ReadyzFollowsReadiness) {
  EXPECT_EQ(Request("/readyz").status, 503);
  ready_ = true;
  EXPECT_EQ(Request("/readyz").status, 200);
  ready_ = false;
  EXPECT_EQ(Request("/readyz").status, 503);
}

TEST_F(HttpServerTest, AnythingElseIsNotFound) {
  EXPECT_EQ(Request("/").status, 404);
  EXPECT_EQ(Request("/").body,
            "not found; try /metrics, /healthz, /readyz, /console/\n");
  EXPECT_EQ(Request("/etc/passwd").status, 404);
  EXPECT_EQ(Request("/metrics/x").status, 404);
}

TEST_F(HttpServerTest, OnlyGetIsAllowed) {
  EXPECT_EQ(Request("/metrics", "POST").status, 405);
  EXPECT_EQ(Request("/metrics", "DELETE").status, 405);
}

TEST_F(HttpServerTest, TheConsoleIsGivenWhatIsSentToIt) {
  const Reply got = Request("/console/api/tree?name=a%20b");
  EXPECT_EQ(got.status, 201);
  EXPECT_EQ(got.content_type, "text/echo");
  EXPECT_EQ(got.body, "GET /console/api/tree name=a%20b ");
  const std::string body(kMaxBody, 'x');
  EXPECT_EQ(Request("/console", "POST", body).body, "POST /console  " + body);
  EXPECT_EQ(Request("/consoles").status, 404);
}

TEST_F(HttpServerTest, ABodyThatIsTooLongIsRefusedWithTheLimit) {
  const Reply reply =
      Request("/console/", "POST", std::string(kMaxBody + 1, 'x'));
  EXPECT_EQ(reply.status, 413);
  EXPECT_THAT(reply.body, HasSubstr("100001 bytes; the limit is 100000"));
}

TEST_F(HttpServerTest, FieldsOfFormsAreDecoded) {
  EXPECT_EQ(FormField("a=1&b=x%20y+z&c=", "b"), "x y z");
  EXPECT_EQ(FormField("a=1&b=x%20y+z&c=", "c"), "");
  EXPECT_EQ(FormField("a=1", "b"), std::nullopt);
  EXPECT_EQ(FormField("", "b"), std::nullopt);
}

TEST_F(HttpServerTest, APortThatIsTakenIsAnErrorThatSaysSo) {
  const absl::Status status = Start(Address()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              StartsWith("cannot listen on " + Address()));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("Address already in use"));
}

TEST_F(HttpServerTest, AHostThatIsNoneIsAnError) {
  EXPECT_FALSE(Start("no.such.host.invalid:0").ok());
}

TEST_F(HttpServerTest, ThePortIsFreeAgainAfterTheServerIsGone) {
  const std::string address = Address();
  server_.reset();
  server_ = Start(address).value();
  EXPECT_EQ(Request("/healthz").status, 200);
}

}  // namespace
}  // namespace pando
