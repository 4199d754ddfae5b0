// Tests the handles that BlockHandles finds for the prompts of a trace.
#include "replay/block_handles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando::replay {
namespace {

constexpr uint32_t kPageTokens = 16;

TEST(BlockHandlesTest, ThePromptBeginsAtItsLastBlockThatIsKnown) {
  const Trace trace{.block_tokens = 64};
  BlockHandles handles(trace, kPageTokens);
  const TraceRequest first{.input_tokens = 250, .block_ids = {1, 2, 3, 4}};
  EXPECT_EQ(handles.Find(first).tokens, 0u);
  handles.Add(first, 0, {.node = 7, .tokens = 128});
  handles.Add(first, 128, {.node = 8, .tokens = 240});

  EXPECT_EQ(handles.Find(first).node, 8u);
  EXPECT_EQ(handles.Find(first).tokens, 240u);
  const TraceRequest longer{.input_tokens = 300, .block_ids = {1, 2, 3, 9, 10}};
  EXPECT_EQ(handles.Find(longer).node, 8u);
  EXPECT_EQ(handles.Find(longer).tokens, 192u);
  const TraceRequest other{.input_tokens = 140, .block_ids = {1, 2, 11}};
  EXPECT_EQ(handles.Find(other).node, 7u);
  EXPECT_EQ(handles.Find(other).tokens, 128u);
  EXPECT_EQ(handles.Find({.input_tokens = 64, .block_ids = {12}}).tokens, 0u);
}

TEST(BlockHandlesTest, NoPromptIsCoveredToItsLastToken) {
  const Trace trace{.block_tokens = 64};
  BlockHandles handles(trace, kPageTokens);
  const TraceRequest request{.input_tokens = 128, .block_ids = {1, 2}};
  handles.Add(request, 0, {.node = 7, .tokens = 128});
  EXPECT_EQ(handles.Find(request).tokens, 112u);
}

}  // namespace
}  // namespace pando::replay
