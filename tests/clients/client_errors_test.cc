// Tests the statuses that the client makes from those of gRPC.
#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include <string>

#include "clients/cpp/src/status.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "pando/errors.h"

namespace pando {
namespace {

std::string Details(const google::protobuf::Message& detail) {
  google::rpc::Status details;
  details.add_details()->PackFrom(detail);
  return details.SerializeAsString();
}

google::rpc::ErrorInfo Info(const std::string& reason) {
  google::rpc::ErrorInfo info;
  info.set_domain("pando");
  info.set_reason(reason);
  return info;
}

TEST(ClientErrorsTest, CodeMessageAndReasonAreTheServers) {
  const absl::Status status =
      FromGrpc(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                            "too few pages", Details(Info("POOL_EXHAUSTED"))));
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(status.message(), "too few pages");
  EXPECT_EQ(ReasonOf(status), reason::kPoolExhausted);
}

TEST(ClientErrorsTest, SuccessStaysSuccess) {
  EXPECT_TRUE(FromGrpc(grpc::Status::OK).ok());
  EXPECT_EQ(ReasonOf(absl::OkStatus()), "");
}

TEST(ClientErrorsTest, AnErrorOfTheTransportHasNoReason) {
  const absl::Status status = FromGrpc(
      grpc::Status(grpc::StatusCode::UNAVAILABLE, "connection refused"));
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(ReasonOf(status), "");
}

TEST(ClientErrorsTest, OnlyAnErrorOfTheTransportIsNoAnswer) {
  const auto is_unanswered = [](grpc::StatusCode code,
                                const std::string& details) {
    return IsUnanswered(FromGrpc(grpc::Status(code, "", details)));
  };
  EXPECT_TRUE(is_unanswered(grpc::StatusCode::UNAVAILABLE, ""));
  EXPECT_TRUE(is_unanswered(grpc::StatusCode::CANCELLED, ""));
  EXPECT_FALSE(is_unanswered(grpc::StatusCode::DEADLINE_EXCEEDED, ""));
  EXPECT_FALSE(
      is_unanswered(grpc::StatusCode::UNAVAILABLE, Details(Info("DRAINING"))));
  EXPECT_FALSE(IsUnanswered(absl::OkStatus()));
}

TEST(ClientErrorsTest, DetailsOfOtherKindsAreSkipped) {
  google::rpc::Status details;
  details.add_details()->PackFrom(google::rpc::Status());
  details.add_details()->PackFrom(Info("DRAINING"));
  EXPECT_EQ(ReasonOf(FromGrpc(grpc::Status(grpc::StatusCode::UNAVAILABLE, "",
                                           details.SerializeAsString()))),
            reason::kDraining);
}

TEST(ClientErrorsTest, WhenToTryAgainIsTheServers) {
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(2);
  retry.mutable_retry_delay()->set_nanos(5);
  google::rpc::Status details;
  details.add_details()->PackFrom(Info("RATE_LIMITED"));
  details.add_details()->PackFrom(retry);
  const absl::Status status =
      FromGrpc(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "too often",
                            details.SerializeAsString()));
  EXPECT_EQ(ReasonOf(status), reason::kRateLimited);
  EXPECT_EQ(RetryAfter(status), absl::Seconds(2) + absl::Nanoseconds(5));
  EXPECT_EQ(RetryAfter(absl::InternalError("")), std::nullopt);
}

TEST(ClientErrorsTest, DetailsThatAreGarbageGiveNoReason) {
  EXPECT_EQ(ReasonOf(FromGrpc(
                grpc::Status(grpc::StatusCode::INTERNAL, "", "\xff\xff\xff"))),
            "");
}

}  // namespace
}  // namespace pando
