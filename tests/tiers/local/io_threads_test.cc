#include "tiers/local/io_threads.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/unique_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/no_io_uring.h"
#include "tiers/local/io_ring.h"

namespace pando {
namespace {

using testing::HasSubstr;

constexpr size_t kAlignment = 4096;
constexpr size_t kBlockBytes = 2 * kAlignment;
constexpr size_t kDepth = 2;

enum class Way { kRing, kPlain };

std::unique_ptr<IoQueue> MakeQueue(Way way) {
  if (way == Way::kPlain) return std::make_unique<PlainQueue>();
  auto ring = IoRing::Make(kDepth);
  EXPECT_TRUE(ring.ok()) << ring.status();
  return *std::move(ring);
}

UniqueFd MakeFile() {
  std::string path = absl::StrCat(testing::TempDir(), "io_threads_test.XXXXXX");
  UniqueFd file(mkstemp(path.data()));
  EXPECT_TRUE(file.valid());
  unlink(path.c_str());
  return file;
}

FilePart PartOf(int file, size_t index) {
  return {.file = file,
          .offset = static_cast<off_t>(index * kBlockBytes),
          .bytes = kBlockBytes};
}

class IoThreadsTest : public testing::TestWithParam<Way> {
 protected:
  static IoThreads Make(size_t threads) {
    std::vector<std::unique_ptr<IoQueue>> queues;
    for (size_t i = 0; i < threads; ++i) {
      queues.push_back(MakeQueue(GetParam()));
    }
    return IoThreads(std::move(queues), kBlockBytes, kAlignment);
  }
};

TEST_P(IoThreadsTest, BlocksThatAreWrittenAreReadBackEachOnce) {
  const UniqueFd file = MakeFile();
  IoThreads threads = Make(3);
  for (const size_t count : {0, 1, 2, 100, 3}) {
    std::vector<std::atomic<int>> ends(count);
    threads.ForEach(
        count,
        {.begin = [&](size_t i, std::byte* buffer) -> std::optional<Transfer> {
           EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer) % kAlignment, 0u);
           std::memset(buffer, static_cast<int>(i + count), kBlockBytes);
           return Transfer{PartOf(file.get(), i), buffer, true};
         },
         .end =
             [&](size_t i, std::byte*, const absl::Status& moved) {
               EXPECT_TRUE(moved.ok()) << moved;
               ++ends[i];
             }});
    for (const auto& n : ends) EXPECT_EQ(n, 1);
    threads.ForEach(
        count,
        {.begin = [&](size_t i, std::byte* buffer) -> std::optional<Transfer> {
           return Transfer{PartOf(file.get(), i), buffer, false};
         },
         .end =
             [&](size_t i, std::byte* buffer, const absl::Status& moved) {
               EXPECT_TRUE(moved.ok()) << moved;
               EXPECT_EQ(buffer[0], static_cast<std::byte>(i + count));
               EXPECT_EQ(buffer[kBlockBytes - 1],
                         static_cast<std::byte>(i + count));
               ++ends[i];
             }});
    for (const auto& n : ends) EXPECT_EQ(n, 2);
  }
}

TEST_P(IoThreadsTest, WhatNeedNotBeMovedHasNoEnd) {
  IoThreads threads = Make(2);
  std::atomic<int> begun = 0;
  threads.ForEach(
      10, {.begin = [&](size_t, std::byte*) -> std::optional<Transfer> {
             ++begun;
             return std::nullopt;
           },
           .end = [](size_t, std::byte*,
                     const absl::Status&) { ADD_FAILURE() << "ended"; }});
  EXPECT_EQ(begun, 10);
}

TEST_P(IoThreadsTest, ABlockThatCannotBeMovedSaysWhy) {
  const UniqueFd file = MakeFile();
  ASSERT_EQ(ftruncate(file.get(), 3 * kAlignment), 0);
  IoThreads threads = Make(1);
  std::vector<absl::Status> moved(3);
  const int files[] = {file.get(), file.get(), -1};
  threads.ForEach(
      3, {.begin = [&](size_t i, std::byte* buffer) -> std::optional<Transfer> {
            return Transfer{PartOf(files[i], i), buffer, false};
          },
          .end = [&](size_t i, std::byte*,
                     const absl::Status& status) { moved[i] = status; }});
  EXPECT_TRUE(moved[0].ok()) << moved[0];
  EXPECT_EQ(moved[1], absl::DataLossError("a file of the disk tier ends"));
  EXPECT_THAT(moved[2].message(), HasSubstr("Bad file descriptor"));
}

INSTANTIATE_TEST_SUITE_P(Ways, IoThreadsTest,
                         testing::Values(Way::kRing, Way::kPlain),
                         [](const auto& way) {
                           return way.param == Way::kRing ? "Ring" : "Plain";
                         });

// A pipe without data stands for a disk that hangs.
TEST(IoRingThreadsTest, AThreadWorksOnOthersWhileABlockDoesNotCome) {
  const UniqueFd file = MakeFile();
  ASSERT_EQ(ftruncate(file.get(), 100 * kBlockBytes), 0);
  int ends_of_pipe[2];
  ASSERT_EQ(pipe2(ends_of_pipe, O_CLOEXEC), 0);
  const UniqueFd from(ends_of_pipe[0]);
  const UniqueFd to(ends_of_pipe[1]);
  std::vector<std::unique_ptr<IoQueue>> queues;
  queues.push_back(MakeQueue(Way::kRing));
  IoThreads threads(std::move(queues), kBlockBytes, kAlignment);

  // One thread adds to `ended`, and this thread waits for it: no lock is
  // needed.
  std::vector<size_t> ended;
  absl::Notification others_have_ended;
  const std::vector<std::byte> late(kBlockBytes, std::byte{7});
  std::thread disk([&] {
    others_have_ended.WaitForNotification();
    EXPECT_EQ(write(to.get(), late.data(), late.size()),
              static_cast<ssize_t>(late.size()));
  });
  threads.ForEach(
      100,
      {.begin = [&](size_t i, std::byte* buffer) -> std::optional<Transfer> {
         const int source = i == 0 ? from.get() : file.get();
         return Transfer{PartOf(source, i), buffer, false};
       },
       .end =
           [&](size_t i, std::byte* buffer, const absl::Status& moved) {
             EXPECT_TRUE(moved.ok()) << moved;
             EXPECT_EQ(buffer[0], i == 0 ? late[0] : std::byte{0});
             ended.push_back(i);
             if (ended.size() == 99) others_have_ended.Notify();
           }});
  disk.join();
  ASSERT_EQ(ended.size(), 100u);
  EXPECT_EQ(ended.back(), 0u);
}

TEST(IoRingTest, WhereTheSandboxForbidsRingsThereIsNone) {
  std::thread([] {
    ForbidIoUring();
    EXPECT_TRUE(absl::IsPermissionDenied(IoRing::Make(kDepth).status()))
        << IoRing::Make(kDepth).status();
  }).join();
}

}  // namespace
}  // namespace pando
