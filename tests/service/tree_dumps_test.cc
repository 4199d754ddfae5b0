#include "service/handlers/tree_dumps.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace pando {
namespace {

using Source = TreeDumps::Source;

TreeDump DumpOf(size_t nodes, uint32_t omitted = 0) {
  TreeDump dump;
  dump.nodes.resize(nodes);
  dump.omitted = omitted;
  return dump;
}

// How many nodes the next message has; -1: there is none.
int NextNodes(Source& source) {
  v1::DumpTreeResponse message;
  return source.Fill(message) == Source::Next::kMessage ? message.nodes_size()
                                                        : -1;
}

TEST(TreeDumps, ADumpIsSentInMessagesAndEndsInOrder) {
  TreeDumps dumps;
  const auto source = dumps.Begin(DumpOf(1'500, 7));
  v1::DumpTreeResponse message;
  EXPECT_EQ(NextNodes(*source), 1'000);
  EXPECT_EQ(source->Fill(message), Source::Next::kMessage);
  EXPECT_EQ(message.nodes_size(), 500);
  EXPECT_EQ(message.omitted(), 7u);
  EXPECT_EQ(NextNodes(*source), -1);
  EXPECT_TRUE(source->end().ok());
}

TEST(TreeDumps, AnEmptyDumpIsOneMessage) {
  TreeDumps dumps;
  const auto source = dumps.Begin(DumpOf(0));
  EXPECT_EQ(NextNodes(*source), 0);
  EXPECT_EQ(NextNodes(*source), -1);
  EXPECT_TRUE(source->end().ok());
}

TEST(TreeDumps, TheDumpThatIsReadMostSlowlyMakesRoom) {
  TreeDumps dumps;
  const auto read = dumps.Begin(DumpOf(100'000));
  std::vector<std::unique_ptr<Source>> unread;
  for (int i = 0; i < 3; ++i) unread.push_back(dumps.Begin(DumpOf(100'000)));
  EXPECT_EQ(NextNodes(*read), 1'000);
  const auto last = dumps.Begin(DumpOf(100'000));
  EXPECT_EQ(NextNodes(*unread[0]), -1);
  EXPECT_EQ(unread[0]->end().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(NextNodes(*unread[1]), 1'000);
  EXPECT_EQ(NextNodes(*read), 1'000);
  EXPECT_EQ(NextNodes(*last), 1'000);
}

TEST(TreeDumps, ACallerWhoLeavesMakesRoom) {
  TreeDumps dumps;
  const auto kept = dumps.Begin(DumpOf(100'000));
  for (int i = 0; i < 10; ++i) dumps.Begin(DumpOf(100'000));
  EXPECT_EQ(NextNodes(*kept), 1'000);
}

}  // namespace
}  // namespace pando
