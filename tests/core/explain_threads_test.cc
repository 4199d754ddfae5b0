// ExplainMatch goes through the namespaces one at a time and lets other calls
// run in between. Meant for the thread sanitizer.

#include <string>
#include <thread>
#include <vector>

#include "core/prefix_cache.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

TEST(ExplainThreadsTest, NamespacesMayGoWhileTheyAreGoneThrough) {
  constexpr uint32_t kPageTokens = 4;
  constexpr uint32_t kNamespaces = 1000;
  constexpr int kRounds = 5;
  const SessionId session(1);
  const std::vector<Token> tokens(kPageTokens, 7);
  PrefixCache cache({kPageTokens, kNamespaces + 1});
  cache.OpenSession(session, "many tenants");
  for (int round = 0; round < kRounds; ++round) {
    for (uint32_t n = 0; n < kNamespaces; ++n) {
      const NamespaceKey ns{std::to_string(n), std::nullopt};
      const auto pages = cache.Allocate({session, ns, 1});
      ASSERT_TRUE(cache
                      .Insert({.session = session,
                               .ns = ns,
                               .tokens = tokens,
                               .pages = pages->pages})
                      .ok());
    }
    std::thread flush([&] { cache.Flush(); });
    std::thread another_flush([&] { cache.Flush(); });
    // The prompt is shorter than a page, so no namespace has more of it and the
    // search must look at all namespaces.
    const auto prompt = std::span(tokens).first(kPageTokens - 1);
    while (cache.Stats().namespaces > 0) {
      const auto result = cache.ExplainMatch(NamespaceKey(), prompt);
      EXPECT_THAT(result.longer_in_namespaces, testing::IsEmpty());
    }
    flush.join();
    another_flush.join();
  }
  EXPECT_THAT(cache.CheckInvariants(), testing::IsEmpty());
}

}  // namespace
}  // namespace pando
