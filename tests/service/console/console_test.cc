// Tests the answers of the console without HTTP.

#include "service/console/console.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "service/handlers/admin_service.h"
#include "service/handlers/stepped_calls.h"
#include "service/rpc/rpc_server.h"
#include "service/self_check.h"
#include "tests/service/console/grown_cache.h"

namespace pando {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Pair;

// Tokens with numbers that occur only in answers that show tokens.
const std::vector<Token> kSecretTokens = {3999999901, 3999999902, 3999999903};
const NamespaceKey kSecretNamespace = {.extra_key = "tenant",
                                       .cache_salt = "a secret"};

class ConsoleTest : public testing::Test {
 protected:
  ConsoleTest() {
    cache_.Publish(kSecretTokens, kSecretNamespace);
    cache_.Publish({1, 2, 3, 4});
    cache_.Lock({1, 2, 3, 4});
    Start(false);
  }

  void Start(bool shows_tokens) {
    console_ = std::make_unique<Console>(Console::Config{
        .cache = &*cache_,
        .rpc = &rpc_metrics_,
        .is_draining = &is_draining_,
        .explain =
            [this](const auto& request, auto& response) {
              return admin_.ExplainMatchBlocking(request, response);
            },
        .max_tokens = 1'000,
        .shows_tokens = shows_tokens});
  }

  HttpReply Get(const std::string& what, const std::string& query = "") {
    return console_->Answer(
        {.method = "GET", .path = "/console/" + what, .query = query});
  }
  json Ask(const std::string& what, const std::string& query = "") {
    const HttpReply reply = Get("api/" + what, query);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return json::parse(reply.body);
  }
  std::string ErrorOf(const HttpReply& reply, int status) {
    EXPECT_EQ(reply.status, status) << reply.body;
    return json::parse(reply.body).at("error");
  }
  HttpReply Explain(const std::string& body) {
    return console_->Answer({.method = "POST",
                             .path = "/console/api/explain",
                             .query = "",
                             .body = body});
  }

  GrownCache cache_{100};
  SelfCheck self_check_{&*cache_};
  CallPolicy policy_;
  RpcServer server_{&policy_};  // no test starts it
  SteppedCalls stepped_{&*cache_, &server_};
  AdminService admin_{&*cache_,
                      &self_check_,
                      &stepped_,
                      {.epoch = 1, .max_tokens = 1'000, .drain = nullptr}};
  RpcMetrics rpc_metrics_;
  const std::atomic<bool> is_draining_ = false;
  std::unique_ptr<Console> console_;
};

TEST_F(ConsoleTest, ThePageIsInTheProgramAndMayLoadNothingElse) {
  const HttpReply page = Get("");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_THAT(page.body, HasSubstr("<title>Pando</title>"));
  EXPECT_THAT(page.headers,
              Contains(Pair("Content-Security-Policy",
                            AllOf(HasSubstr("default-src 'none'"),
                                  HasSubstr("script-src 'self'")))));
  EXPECT_EQ(Get("main.js").content_type, "text/javascript; charset=utf-8");
  EXPECT_THAT(Get("d3.min.js").body, HasSubstr("d3js.org"));
  EXPECT_THAT(Get("chart.min.js").body, HasSubstr("Chart.js"));
}

TEST_F(ConsoleTest, TheFolderIsFoundWithoutItsSlash) {
  const HttpReply reply =
      console_->Answer({.method = "GET", .path = "/console"});
  EXPECT_EQ(reply.status, 301);
  EXPECT_THAT(reply.headers, Contains(Pair("Location", "/console/")));
}

TEST_F(ConsoleTest, OnlyFilesOfThePageAreServed) {
  for (const char* name : {"nothing.js", "../metrics", "%2e%2e/", "page/"}) {
    EXPECT_EQ(Get(name).status, 404) << name;
  }
}

TEST_F(ConsoleTest, PagesByStateSumToTheCapacity) {
  const json pages = Ask("stats").at("pages");
  uint32_t sum = 0;
  for (const auto& [state, count] : pages.items()) {
    if (state != "capacity") sum += count.get<uint32_t>();
  }
  EXPECT_EQ(sum, pages.at("capacity"));
  EXPECT_EQ(pages.at("protected"), 4);
}

TEST_F(ConsoleTest, TheTreeIsShownFromEverythingOrFromABranch) {
  const json all = Ask("tree");
  EXPECT_EQ(all.at("branches").size(), 5u);
  EXPECT_EQ(all.at("branches")[0].at("below").at("pages"), 7);
  EXPECT_EQ(all.at("path").size(), 1u);
  const json node = all.at("branches")[4];
  const json below = Ask("tree", "name=" + node.at("name").get<std::string>());
  EXPECT_EQ(below.at("branches").size(), 1u);
  EXPECT_EQ(below.at("path").size(), 3u);
  EXPECT_EQ(Ask("tree", "limit=1").at("branches")[0].at("merged").at("pages"),
            7);
}

TEST_F(ConsoleTest, WhatIsSmallerThanAPartOfTheWholeIsMerged) {
  cache_.Publish({9});
  EXPECT_EQ(Ask("tree", "parts=8").at("branches").size(), 6u);
  EXPECT_EQ(Ask("tree", "parts=7").at("branches").size(), 5u);
}

TEST_F(ConsoleTest, BadQueriesAreRefusedWithFieldValueAndLimit) {
  EXPECT_EQ(ErrorOf(Get("api/tree", "limit=0"), 400),
            "limit is '0'; must be a whole number from 1 to 2000");
  EXPECT_THAT(ErrorOf(Get("api/tree", "limit=2001"), 400), HasSubstr("2001"));
  EXPECT_THAT(ErrorOf(Get("api/tree", "parts=-1"), 400), HasSubstr("-1"));
  EXPECT_THAT(ErrorOf(Get("api/tree", "name=node-77"), 404),
              HasSubstr("node-77"));
  EXPECT_THAT(ErrorOf(Get("api/branch", "name=" + std::string(300, 'x')), 400),
              HasSubstr("name has 300 bytes; the limit is 256"));
  EXPECT_THAT(ErrorOf(Get("api/locks", "session=x"), 400), HasSubstr("'x'"));
}

TEST_F(ConsoleTest, WhatDoesNotExistIsNotFound) {
  EXPECT_THAT(ErrorOf(Get("api/flush"), 404), HasSubstr("/console/api/flush"));
  EXPECT_EQ(
      console_->Answer({.method = "POST", .path = "/console/api/tree"}).status,
      404);
  EXPECT_EQ(console_->Answer({.method = "POST", .path = "/console/"}).status,
            405);
}

TEST_F(ConsoleTest, LocksShowTheWayToWhatTheyHold) {
  const json locks = Ask("locks", "session=1");
  EXPECT_EQ(locks.at("total"), 1);
  const json lock = locks.at("locks")[0];
  EXPECT_EQ(lock.at("locked_tokens"), 4);
  EXPECT_EQ(lock.at("path").size(), 3u);
  EXPECT_EQ(Ask("locks", "session=2").at("total"), 0);
  const json session = Ask("sessions").at("sessions")[0];
  EXPECT_EQ(session.at("client_name"), "worker");
  EXPECT_EQ(session.at("locks"), 1);
}

TEST_F(ConsoleTest, SearchFindsNodesNamespacesAndSessions) {
  EXPECT_EQ(Ask("search", "text=TENANT").at("found")[0].at("name"),
            "namespace-1");
  EXPECT_EQ(Ask("search", "text=work").at("found")[0].at("session"), 1);
  EXPECT_EQ(Ask("search", "text=nothing").at("found").size(), 0u);
  const std::string node = Ask("tree").at("branches")[4].at("name");
  const json found = Ask("search", "text=" + node.substr(5)).at("found");
  EXPECT_EQ(found[0].at("name"), node);
}

TEST_F(ConsoleTest, AMatchIsExplainedAsAdminDoes) {
  const json whole = json::parse(Explain(R"({"tokens": [1, 2, 3, 4]})").body);
  EXPECT_EQ(whole.at("end"), "MATCH_END_COMPLETE");
  EXPECT_EQ(whole.at("matched_tokens"), 4);
  EXPECT_EQ(whole.at("locks").size(), 1u);
  const json other = json::parse(Explain(R"({"tokens": [3999999901, 7],
                  "namespace": {"extra_key": "tenant",
                                "cache_salt": "a secret"}})")
                                     .body);
  EXPECT_EQ(other.at("end"), "MATCH_END_DIVERGED");
}

TEST_F(ConsoleTest, BadPromptsToExplainAreRefused) {
  for (const std::string body :
       {"", "{", "[]", R"({"tokens": [-1]})", R"({"tokens": [4294967296]})",
        R"({"tokens": ["x"]})", R"({"salt": "a"})"}) {
    EXPECT_THAT(ErrorOf(Explain(body), 400), HasSubstr("ExplainMatchRequest"))
        << body;
  }
  EXPECT_EQ(Explain(std::string(1 << 20, '[')).status, 400);
  std::string many = "1";
  for (int i = 0; i < 1'000; ++i) many += ",1";
  EXPECT_THAT(ErrorOf(Explain("{\"tokens\":[" + many + "]}"), 400),
              HasSubstr("1001 entries; the limit is 1000"));
  EXPECT_LT(many.size(), console_->max_body_bytes());
}

TEST_F(ConsoleTest, NoAnswerShowsTokensOrSaltsUnlessToldTo) {
  const std::string node =
      "name=node-" +
      std::to_string(cache_->DumpTree(100, std::nullopt).nodes[0].node);
  const auto answers = [&] {
    std::string all;
    for (const char* what :
         {"stats", "tree", "branch", "sessions", "search", "tokens"}) {
      all += Get(std::string("api/") + what, node + "&text=tenant").body;
    }
    return all + Get("api/locks", "session=1").body;
  };
  for (const Token token : kSecretTokens) {
    EXPECT_THAT(answers(), Not(HasSubstr(std::to_string(token))));
  }
  EXPECT_EQ(Get("api/tokens", node).status, 404);
  EXPECT_THAT(answers(), Not(HasSubstr("a secret")));
  Start(true);
  EXPECT_EQ(Ask("tokens", node).at("tokens").get<std::vector<Token>>(),
            kSecretTokens);
  EXPECT_THAT(answers(), Not(HasSubstr("a secret")));
}

}  // namespace
}  // namespace pando
