#include "core/journal/event_log.h"

#include <memory>
#include <numeric>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint32_t kCapacity = 8;

// A test with a log and the one run of pages that the log's tree holds.
class EventLogTest : public testing::Test {
 protected:
  void Store(uint32_t first_page, uint32_t pages, PageId parent) {
    log_.Stored(segment_, first_page, pages, parent, ns_);
  }
  void Remove(std::vector<PageId> pages) {
    log_.Removed(pages, EvictionReason::kRequest);
  }

  // Returns events in words, such as "stored 1..4 after 0", "removed 4" and
  // "cleared".
  std::vector<std::string> Take() {
    if (log_.has_gap()) log_.EndGap();
    std::vector<RawEvent> events;
    log_.Take(events);
    std::vector<std::string> out;
    for (const RawEvent& event : events) out.push_back(Spell(event));
    return out;
  }

  EventLog log_{kCapacity};

 private:
  static std::string Spell(const RawEvent& event) {
    if (const auto* stored = std::get_if<PagesStored>(&event)) {
      return absl::StrCat("stored ", stored->pages().front().value(), "..",
                          stored->pages().back().value(), " after ",
                          stored->parent.value());
    }
    if (const auto* removed = std::get_if<PagesRemoved>(&event)) {
      return absl::StrCat("removed ", removed->pages.front().value());
    }
    return "cleared";
  }

  const std::vector<Token> tokens_ = {1, 2, 3, 4};
  const std::vector<PageId> pages_ = {PageId(1), PageId(2), PageId(3),
                                      PageId(4)};
  const SegmentRef segment_ = SegmentRef::Copy(tokens_, pages_);
  const std::shared_ptr<const NamespaceKey> ns_ =
      std::make_shared<NamespaceKey>();
};

TEST_F(EventLogTest, KeepsNothingUntilItIsStarted) {
  Store(0, 4, kPaddingPage);
  EXPECT_FALSE(log_.has_gap());
  EXPECT_THAT(Take(), IsEmpty());
}

TEST_F(EventLogTest, BeginsWithAGapThatTheCallerEnds) {
  log_.Start();
  EXPECT_TRUE(log_.has_gap());
  Store(0, 4, kPaddingPage);  // the caller tells this when it ends the gap
  log_.EndGap();
  Store(0, 2, kPaddingPage);
  EXPECT_THAT(Take(), ElementsAre("cleared", "stored 1..2 after 0"));
}

TEST_F(EventLogTest, GivesEachEventOnceAndInOrder) {
  log_.Start();
  Take();
  Store(0, 2, kPaddingPage);
  Store(2, 1, PageId(2));
  Remove({PageId(3)});
  log_.Cleared();
  EXPECT_THAT(Take(), ElementsAre("stored 1..2 after 0", "stored 3..3 after 2",
                                  "removed 3", "cleared"));
  EXPECT_THAT(Take(), IsEmpty());
}

TEST_F(EventLogTest, AStartAgainChangesNothing) {
  log_.Start();
  Take();
  Remove({PageId(3)});
  log_.Start();
  EXPECT_THAT(Take(), ElementsAre("removed 3"));
}

TEST_F(EventLogTest, AfterAStopItBeginsAnew) {
  log_.Start();
  Take();
  Remove({PageId(3)});
  log_.Stop();
  Remove({PageId(4)});
  EXPECT_THAT(Take(), IsEmpty());
  log_.Start();
  EXPECT_THAT(Take(), ElementsAre("cleared"));
}

TEST_F(EventLogTest, WhenNobodyTakesThemItBeginsAnew) {
  log_.Start();
  Take();
  for (uint32_t i = 0; i <= 4 * kCapacity; ++i) Remove({PageId(3)});
  EXPECT_TRUE(log_.has_gap());
  EXPECT_THAT(Take(), ElementsAre("cleared"));
  Remove({PageId(3)});
  EXPECT_THAT(Take(), ElementsAre("removed 3"));
}

TEST_F(EventLogTest, KeepsAllUpToItsLimit) {
  log_.Start();
  Take();
  for (uint32_t i = 0; i < 4 * kCapacity; ++i) Remove({PageId(3)});
  EXPECT_EQ(Take().size(), 4 * kCapacity);
}

}  // namespace
}  // namespace pando
