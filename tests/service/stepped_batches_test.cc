// Tests batches with calls that take long, through a real server and channel.
// Other calls are served before a batch ends, and each call of a batch is
// carried out once.

#include "tests/service/stepped_calls_fixture.h"

namespace pando {
namespace {

// When a call of a batch takes several steps, the next call of the batch is
// carried out after the last step.
TEST_F(SteppedCallsTest, ABatchGoesOnWhenItsLongCallIsOver) {
  v1::BatchRequest batch;
  for (const uint32_t pages : {kPages - 10, 10u}) {
    auto* const allocate = batch.add_requests()->mutable_allocate_pages();
    allocate->set_session_id(session_.value());
    allocate->set_pages(pages);
  }
  auto* const refused = batch.add_requests()->mutable_allocate_pages();
  refused->set_session_id(session_.value());
  refused->set_pages(1);
  const auto call = StartBatch(batch);
  ASSERT_TRUE(call->Wait().ok());
  EXPECT_EQ(call->response.responses(0).allocate_pages().page_ids_size(),
            static_cast<int>(kPages) - 10);
  EXPECT_EQ(call->response.responses(1).allocate_pages().page_ids_size(), 10);
  EXPECT_TRUE(call->response.responses(2).has_error());
}

TEST_F(SteppedCallsTest, OthersAreServedBetweenTheCallsOfABatch) {
  v1::BatchRequest batch;
  for (int i = 0; i < 256; ++i) {
    auto* const scoring = batch.add_requests()->mutable_match_prefixes();
    for (int query = 0; query < 40; ++query) scoring->add_queries();
  }
  EXPECT_TRUE(SeveralAreServedWhile([&] { return StartBatch(batch); }));
}

TEST_F(SteppedCallsTest, TheCallsOfABatchAreCarriedOutInOrder) {
  constexpr int kInserts = 128;
  v1::BatchRequest batch;
  std::vector<PageId> pages =
      cache_
          .Allocate({.session = session_,
                     .ns = NamespaceKey(),
                     .pages = kInserts * (kInserts + 1) / 2})
          .value()
          .pages;
  for (int tokens = 1; tokens <= kInserts; ++tokens) {
    auto* const insert = batch.add_requests()->mutable_insert();
    insert->set_session_id(session_.value());
    for (int i = 0; i < tokens; ++i) {
      insert->add_tokens(kPages + 1 + i);
      insert->add_page_ids(pages.back().value());
      pages.pop_back();
    }
  }
  const auto call = StartBatch(batch);
  ASSERT_TRUE(call->Wait().ok());
  for (int i = 0; i < kInserts; ++i) {
    const auto& answer = call->response.responses(i);
    ASSERT_TRUE(answer.has_insert()) << answer.DebugString();
    EXPECT_EQ(answer.insert().existing_tokens(), i);
  }
}

TEST_F(SteppedCallsTest, ABatchThatIsRepeatedBeforeItsEndDoesNothingTwice) {
  v1::BatchRequest batch;
  for (int i = 1; i <= 256; ++i) {
    auto* const allocate = batch.add_requests()->mutable_allocate_pages();
    allocate->set_session_id(session_.value());
    allocate->set_pages(100);
    allocate->set_request_id(i);
  }
  const auto first = StartBatch(batch);
  const auto repeat = StartBatch(batch);
  ASSERT_TRUE(first->Wait().ok());
  ASSERT_TRUE(repeat->Wait().ok());
  for (int i = 0; i < batch.requests_size(); ++i) {
    const auto& answer = first->response.responses(i).allocate_pages();
    const auto& again = repeat->response.responses(i).allocate_pages();
    ASSERT_EQ(answer.page_ids_size(), 100);
    EXPECT_TRUE(std::ranges::equal(answer.page_ids(), again.page_ids()));
  }
  EXPECT_EQ(cache_.Stats().pages.reserved, 25'600u);
}

}  // namespace
}  // namespace pando
