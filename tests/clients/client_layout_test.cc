// Tests that the client computes strides and fingerprints exactly as pandod
// does.
#include <gtest/gtest.h>

#include "pando/pool.h"

namespace pando {
namespace {

KvLayout Layout(LayoutOrder order) {
  return KvLayout{.layers = 2,
                  .kv_planes = 2,
                  .heads = 3,
                  .head_size = 4,
                  .dtype = DType::kBFloat16,
                  .page_tokens = 8,
                  .order = order}
      .WithStrides(5);
}

TEST(ClientLayoutTest, StridesOfLayerFirst) {
  const KvLayout layout = Layout(LayoutOrder::kLayerFirst);
  EXPECT_EQ(layout.head_stride, 8u);
  EXPECT_EQ(layout.token_stride, 24u);
  EXPECT_EQ(layout.page_stride, 192u);
  EXPECT_EQ(layout.kv_stride, 960u);
  EXPECT_EQ(layout.layer_stride, 1920u);
}

TEST(ClientLayoutTest, StridesOfPageFirst) {
  const KvLayout layout = Layout(LayoutOrder::kPageFirst);
  EXPECT_EQ(layout.kv_stride, 192u);
  EXPECT_EQ(layout.layer_stride, 384u);
  EXPECT_EQ(layout.page_stride, 768u);
}

// A test of pandod expects the same value for this layout.
TEST(ClientLayoutTest, FingerprintIsTheServers) {
  EXPECT_EQ(Fingerprint(Layout(LayoutOrder::kLayerFirst), "m"),
            0x3bddbbfc3876f71bu);
}

TEST(ClientLayoutTest, FingerprintOfOpaquePagesIsTheServers) {
  const KvLayout layout = KvLayout{.layers = 3,
                                   .dtype = DType::kOpaque,
                                   .page_tokens = 8,
                                   .piece_bytes = 100,
                                   .page_format = "vllm"}
                              .WithStrides(5);
  EXPECT_EQ(Fingerprint(layout, "m"), 0xe5f58fa2b439304u);
}

}  // namespace
}  // namespace pando
