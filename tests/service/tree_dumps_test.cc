#include "service/handlers/tree_dumps.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/prefix_cache.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

using Source = TreeDumps::Source;

constexpr uint32_t kNodes = 2'500;
constexpr int kMostDumps = 16;

// A tree of kNodes nodes with one page each.
class TreeDumpsTest : public testing::Test {
 protected:
  TreeDumpsTest() {
    cache_.OpenSession(session_, "worker");
    const NamespaceKey ns;
    for (Token token = 0; token < kNodes; ++token) {
      const auto pages = cache_.Allocate({session_, ns, 1}).value().pages;
      const std::vector<Token> tokens = {token};
      EXPECT_TRUE(cache_
                      .Insert({.session = session_,
                               .ns = ns,
                               .tokens = tokens,
                               .pages = pages})
                      .ok());
    }
  }

  std::unique_ptr<Source> Begin(uint32_t limit = kNodes) {
    return dumps_.Begin(TreeDumpWork(limit, std::nullopt));
  }

 private:
  const SessionId session_{1};
  PrefixCache cache_{{.page_tokens = 1, .capacity_pages = kNodes + 1}};
  TreeDumps dumps_{&cache_};
};

// Returns how many nodes the next message has, or none if there are no more
// messages.
std::optional<int> NextNodes(Source& source) {
  v1::DumpTreeResponse message;
  if (source.Fill(message) == Source::Next::kEnd) return std::nullopt;
  return message.nodes_size();
}

TEST_F(TreeDumpsTest, ADumpIsSentInMessagesAndEndsInOrder) {
  const auto source = Begin(1'500);
  v1::DumpTreeResponse message;
  EXPECT_EQ(NextNodes(*source), 1'000);
  EXPECT_EQ(source->Fill(message), Source::Next::kMessage);
  EXPECT_EQ(message.nodes_size(), 500);
  EXPECT_EQ(message.omitted(), kNodes - 1'500);
  EXPECT_EQ(NextNodes(*source), std::nullopt);
  EXPECT_TRUE(source->end().ok());
}

TEST(TreeDumps, TheDumpOfAnEmptyTreeIsOneMessage) {
  PrefixCache cache({.page_tokens = 1, .capacity_pages = 2});
  TreeDumps dumps(&cache);
  const auto source = dumps.Begin(TreeDumpWork(10, std::nullopt));
  EXPECT_EQ(NextNodes(*source), 0);
  EXPECT_EQ(NextNodes(*source), std::nullopt);
  EXPECT_TRUE(source->end().ok());
}

TEST_F(TreeDumpsTest, TheDumpThatIsReadMostSlowlyMakesRoom) {
  const auto read = Begin();
  std::vector<std::unique_ptr<Source>> unread;
  for (int i = 1; i < kMostDumps; ++i) unread.push_back(Begin());
  EXPECT_EQ(NextNodes(*read), 1'000);
  const auto last = Begin();
  EXPECT_EQ(NextNodes(*unread[0]), std::nullopt);
  EXPECT_EQ(unread[0]->end().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(NextNodes(*unread[1]), 1'000);
  EXPECT_EQ(NextNodes(*read), 1'000);
  EXPECT_EQ(NextNodes(*last), 1'000);
}

TEST_F(TreeDumpsTest, ACallerWhoLeavesMakesRoom) {
  const auto kept = Begin();
  for (int i = 0; i < 2 * kMostDumps; ++i) Begin();
  EXPECT_EQ(NextNodes(*kept), 1'000);
}

}  // namespace
}  // namespace pando
