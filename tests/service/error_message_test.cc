// Tests that the errors of the core name fields of the protocol and options.

#include "service/calls/error_message.h"

#include "absl/status/status.h"
#include "core/requests/errors.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

TEST(ErrorMessageTest, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(MessageOf(MakeError(Reason::kHandleGone, Subject::kHandle, "gone")),
            "after: gone");
  EXPECT_EQ(
      MessageOf(MakeError(Reason::kLockUnknown, Subject::kAnchor, "unknown")),
      "lock_id: unknown");
}

TEST(ErrorMessageTest, NamesTheOptionThatSetsTheLimit) {
  EXPECT_EQ(MessageOf(MakeError(Reason::kSessionLimit, Subject::kMaxKeptBytes,
                                "the limit is 5")),
            "the limit is 5 (--max-kept-bytes-per-session)");
}

TEST(ErrorMessageTest, LeavesOtherMessagesAsTheyAre) {
  EXPECT_EQ(MessageOf(MakeError(Reason::kPoolExhausted, "full")), "full");
  EXPECT_EQ(MessageOf(absl::CancelledError("gone")), "gone");
  EXPECT_EQ(MessageOf(absl::OkStatus()), "");
}

TEST(ErrorMessageTest, EachSubjectHasAFieldOrAnOption) {
  for (int i = 1; i <= static_cast<int>(Subject::kMaxKeptBytes); ++i) {
    const auto subject = static_cast<Subject>(i);
    EXPECT_NE(MessageOf(MakeError(Reason::kInvalidField, subject, "wrong")),
              "wrong")
        << i;
  }
}

}  // namespace
}  // namespace pando
