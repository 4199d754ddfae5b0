#include "base/status_macros.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

absl::StatusOr<int> Half(int number) {
  if (number % 2 != 0) return absl::InvalidArgumentError("odd");
  return number / 2;
}

absl::Status CheckHalves(int number, int* checked) {
  RETURN_IF_ERROR(Half(number).status());
  ++*checked;
  return absl::OkStatus();
}

TEST(ReturnIfErrorTest, GoesOnAfterOkAndReturnsAnError) {
  int checked = 0;
  EXPECT_TRUE(CheckHalves(2, &checked).ok());
  EXPECT_EQ(CheckHalves(3, &checked), absl::InvalidArgumentError("odd"));
  EXPECT_EQ(checked, 1);
}

absl::StatusOr<int> Quarter(int number) {
  ASSIGN_OR_RETURN(const int half, Half(number));
  int quarter = 0;
  ASSIGN_OR_RETURN(quarter, Half(half));
  return quarter;
}

TEST(AssignOrReturnTest, DeclaresAssignsAndReturnsAnError) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).status(), absl::InvalidArgumentError("odd"));
}

absl::StatusOr<std::unique_ptr<std::string>> MakeText() {
  return std::make_unique<std::string>("text");
}

absl::StatusOr<std::unique_ptr<std::string>> PassOn() {
  ASSIGN_OR_RETURN(std::unique_ptr<std::string> text, MakeText());
  return text;
}

TEST(AssignOrReturnTest, MovesWhatCannotBeCopied) {
  EXPECT_EQ(**PassOn(), "text");
}

}  // namespace
}  // namespace pando
