// Tests what a process that ends badly writes to its log.
#include "os/logging/log.h"

#include <google/protobuf/stubs/common.h>
#include <google/protobuf/stubs/logging.h>
#include <grpc/grpc.h>
#include <grpc/support/log.h>

#include <cstdlib>

#include "gtest/gtest.h"

namespace pando {
namespace {

TEST(LogDeathTest, TheLastWordsOfGrpcAreWritten) {
  EXPECT_DEATH(
      {
        StartLog("error", "json");
        grpc_init();
        GPR_ASSERT(1 == 2);
      },
      "\"level\":\"critical\",\"msg\":\"grpc aborts\",\"text\":\"assertion "
      "failed: 1 == 2\"");
}

TEST(LogDeathTest, AnErrorOfProtobufThatIsFatalIsWritten) {
  EXPECT_DEATH(
      {
        StartLog("error", "json");
        try {
          GOOGLE_LOG(FATAL) << "nothing helps";
        } catch (const google::protobuf::FatalException&) {
          std::abort();
        }
      },
      "\"msg\":\"protobuf\",\"text\":\"nothing helps\"");
}

}  // namespace
}  // namespace pando
