// Tests a pool that gets its layout from the first worker that attaches.
#include <thread>

#include "pando/operator.h"
#include "tests/clients/pandod_fixture.h"

namespace pando {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kPages = 2048;

KvLayout LayoutOf(uint32_t layers) {
  return {.layers = layers,
          .kv_planes = 2,
          .heads = 2,
          .head_size = 8,
          .dtype = DType::kFloat16,
          .page_tokens = kPageTokens};
}

uint64_t PageBytesOf(const KvLayout& layout) {
  return uint64_t{2} * 2 * layout.layers * layout.heads * layout.head_size *
         layout.page_tokens;
}

class OpenPoolTest : public PandodTest {
 protected:
  std::vector<std::string> Flags() const override {
    return {"--http",       "",
            "--log-level",  "error",
            "--pool-bytes", std::to_string(kPages * PageBytesOf(LayoutOf(3)))};
  }
};

TEST_F(OpenPoolTest, TheFirstWorkerSaysTheLayoutAndTheModel) {
  const auto first = Connect(), second = Connect();
  EXPECT_TRUE(first->DescribePool()->is_open);
  const AttachOptions options = {.expected_layout = LayoutOf(3), .model = "m"};
  const auto writer = first->AttachPool(options);
  ASSERT_TRUE(writer.ok()) << writer.status();
  const auto reader = second->AttachPool(options);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const auto pool = first->DescribePool();
  EXPECT_FALSE(pool->is_open);
  EXPECT_EQ(pool->capacity_pages, kPages);
  EXPECT_EQ(pool->model, "m");
  EXPECT_EQ(pool->fingerprint,
            Fingerprint(LayoutOf(3).WithStrides(kPages), "m"));
  const auto page = first->AllocatePages(1);
  ASSERT_TRUE(page.ok()) << page.status();
  *writer->KeyAddress(2, page->ids[0], 3, 1) = std::byte{7};
  EXPECT_EQ(*reader->KeyAddress(2, page->ids[0], 3, 1), std::byte{7});
}

TEST_F(OpenPoolTest, APandodThatDrainsTakesNoLayout) {
  const auto client = Connect();
  ASSERT_TRUE((*Operator::Make({.address = socket_path()}))->Drain().ok());
  const auto refused = client->AttachPool({.expected_layout = LayoutOf(3)});
  EXPECT_EQ(ReasonOf(refused.status()), "DRAINING") << refused.status();
  EXPECT_TRUE(client->DescribePool()->is_open);
}

TEST_F(OpenPoolTest, ALaterWorkerThatDiffersIsToldAllFieldsAndAFittingPandod) {
  const auto first = Connect(), other = Connect();
  ASSERT_TRUE(
      first->AttachPool({.expected_layout = LayoutOf(3), .model = "m"}).ok());
  const absl::Status refused =
      other->AttachPool({.expected_layout = LayoutOf(4), .model = "n"})
          .status();
  EXPECT_THAT(refused, FailsWith("LAYOUT_MISMATCH"));
  EXPECT_EQ(refused.message(),
            "layers=4, model=n, but the pool has layers=3, model=m; a pool "
            "that fits: pandod --pool-bytes 6291456 --layers 4 --kv-planes 2 "
            "--heads 2 --head-size 8 --dtype float16 --page-tokens 16 --model "
            "'n'");
}

TEST_F(OpenPoolTest, OfTwoFirstWorkersThatDifferOneIsRefused) {
  std::vector<absl::Status> answers(2);
  std::vector<std::thread> workers;
  for (uint32_t i = 0; i < 2; ++i) {
    workers.emplace_back([this, i, &answers] {
      const auto client = Connect();
      answers[i] =
          client->AttachPool({.expected_layout = LayoutOf(3 + i)}).status();
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_NE(answers[0].ok(), answers[1].ok());
  const absl::Status& refused = answers[0].ok() ? answers[1] : answers[0];
  EXPECT_THAT(refused, FailsWith("LAYOUT_MISMATCH"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("a pool that fits"));
}

TEST_F(OpenPoolTest, CallsThatNeedPagesAreRefusedOnEachTransport) {
  for (const bool lane : {true, false}) {
    const auto client = Connect({.lane = lane});
    EXPECT_THAT(client->AttachPool().status(), FailsWith("POOL_OPEN"));
    EXPECT_THAT(client->MatchPrefix(Prompt(32)).status(),
                FailsWith("POOL_OPEN"));
    EXPECT_THAT(client->AllocatePages(1).status(), FailsWith("POOL_OPEN"));
    EXPECT_THAT(client->Evict(1).status(), FailsWith("POOL_OPEN"));
    EXPECT_TRUE(client->GetStats().ok());
  }
}

}  // namespace
}  // namespace pando
