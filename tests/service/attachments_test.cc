#include "service/memory/attachments.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gpu/host_kv_pool.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

using ::testing::Optional;
using ::testing::SizeIs;

constexpr uint32_t kPages = 16;
constexpr uint32_t kReserved = 3;
constexpr SessionId kSession{77};
constexpr pid_t kNotVisible = 0;

// A process that does nothing until it is killed.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ == 0) {
      while (true) pause();
    }
  }
  ~Child() { Kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }

  void Kill() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

// A session with reserved pages, and workers that attach to it. The memory can
// tell whether any process still holds a worker's descriptors. This process
// holds them in place of the worker and of the processes that the worker passed
// them to.
class AttachmentsTest : public testing::Test {
 protected:
  AttachmentsTest() {
    cache_.OpenSession(kSession, "worker");
    EXPECT_TRUE(cache_.Allocate({kSession, NamespaceKey(), kReserved}).ok());
  }

  std::vector<SharedDescriptor> Attach(
      pid_t pid, AttachGrant::What what = AttachGrant::What::kPool) {
    auto shards = attachments_->Attach({kSession, what}, pid);
    EXPECT_TRUE(shards.ok()) << shards.status();
    return std::move(shards).value_or(std::vector<SharedDescriptor>());
  }

  // Suspends the session, as when its stream breaks, and lets its grace pass.
  void LoseSession() {
    cache_.SuspendSession(kSession, absl::UnixEpoch());
    Expire();
  }
  void Expire() { cache_.ExpireSessions(now_ += absl::Hours(1), {}); }

  // Returns how many pages are reserved or in quarantine, after the cache has
  // learnt which writers are gone.
  uint32_t HeldPages() {
    attachments_->CheckUnwatched();
    Expire();
    return cache_.Stats().pages.quarantined + cache_.Stats().pages.reserved;
  }

  // Waits until no pages are held. The process watcher reports ends on a thread
  // of its own.
  void AwaitFree() {
    while (HeldPages() > 0) absl::SleepFor(absl::Milliseconds(1));
  }

  const std::unique_ptr<KvPool> pool_ =
      HostKvPool::Create({.layers = 1,
                          .kv_planes = 2,
                          .heads = 1,
                          .head_size = 8,
                          .dtype = DType::kFloat16,
                          .page_tokens = 16,
                          .order = LayoutOrder::kLayerFirst},
                         kPages, 2)
          .value();
  const HostMemory block_memory_ =
      HostMemory::Create("the block memory", 1 << 20).value();
  PrefixCache cache_{{.page_tokens = 16, .capacity_pages = kPages}};
  std::unique_ptr<Attachments> attachments_ =
      Attachments::Start(&cache_, pool_.get(), &block_memory_).value();
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(AttachmentsTest, GivesADescriptorOfEachShardWhileTheSessionLives) {
  EXPECT_THAT(Attach(getpid()), SizeIs(2));
  cache_.CloseSession(kSession);
  EXPECT_EQ(attachments_->Attach({kSession}, getpid()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(AttachmentsTest, TheEndOfTheProcessFreesThePages) {
  Child worker;
  Attach(worker.pid());
  LoseSession();
  worker.Kill();
  AwaitFree();
}

TEST_F(AttachmentsTest, WhoInheritedADescriptorHoldsThePages) {
  Child worker;
  std::vector<SharedDescriptor> inherited = Attach(worker.pid());
  LoseSession();
  worker.Kill();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(HeldPages(), kReserved);
  inherited.pop_back();
  EXPECT_EQ(HeldPages(), kReserved) << "there are two shards";
  inherited.clear();
  EXPECT_EQ(HeldPages(), 0u);
}

TEST_F(AttachmentsTest, WhoInheritedAMappingHoldsThePages) {
  Child worker;
  void* mapping = nullptr;
  {
    const std::vector<SharedDescriptor> shards = Attach(worker.pid());
    mapping = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
                   shards[0].fd.get(), 0);
    ASSERT_NE(mapping, MAP_FAILED);
  }
  Child heir;  // this fork inherits the mapping
  ASSERT_EQ(munmap(mapping, 4096), 0);
  LoseSession();
  worker.Kill();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(HeldPages(), kReserved);
  heir.Kill();
  AwaitFree();
}

TEST_F(AttachmentsTest, AProcessThatCannotBeSeenHoldsThePagesUntilItUnmaps) {
  std::vector<SharedDescriptor> shards = Attach(kNotVisible);
  LoseSession();
  EXPECT_EQ(HeldPages(), kReserved);
  shards.clear();
  EXPECT_EQ(HeldPages(), 0u);
}

TEST_F(AttachmentsTest, ALivingProcessThatHasUnmappedHoldsNoPages) {
  Child worker;
  std::vector<SharedDescriptor> shards = Attach(worker.pid());
  LoseSession();
  EXPECT_EQ(HeldPages(), kReserved);
  shards.clear();
  EXPECT_EQ(HeldPages(), 0u);
}

TEST_F(AttachmentsTest, AProcessThatAttachesAgainIsTheSameWriter) {
  Child worker;
  std::vector<SharedDescriptor> first = Attach(worker.pid());
  std::vector<SharedDescriptor> second = Attach(worker.pid());
  LoseSession();
  EXPECT_THAT(cache_.ListQuarantine(1).sessions.at(0).writers, SizeIs(1));
  first.clear();
  EXPECT_EQ(HeldPages(), kReserved);
  second.clear();
  EXPECT_EQ(HeldPages(), 0u);
}

TEST_F(AttachmentsTest, TheBlockMemoryHoldsLikeThePool) {
  constexpr auto kBlockMemory = AttachGrant::What::kBlockMemory;
  std::vector<SharedDescriptor> blocks = Attach(kNotVisible, kBlockMemory);
  ASSERT_THAT(blocks, SizeIs(1));
  EXPECT_EQ(blocks[0].bytes, block_memory_.bytes());
  LoseSession();
  EXPECT_EQ(HeldPages(), kReserved);
  blocks.clear();
  EXPECT_EQ(HeldPages(), 0u);
}

TEST_F(AttachmentsTest, AWriterThatMapsPoolAndBlockMemoryHoldsByEither) {
  Child worker;
  std::vector<SharedDescriptor> pool = Attach(worker.pid());
  std::vector<SharedDescriptor> blocks =
      Attach(worker.pid(), AttachGrant::What::kBlockMemory);
  LoseSession();
  EXPECT_THAT(cache_.ListQuarantine(1).sessions.at(0).writers, SizeIs(1));
  pool.clear();
  EXPECT_EQ(HeldPages(), kReserved);
  blocks.clear();
  EXPECT_EQ(HeldPages(), 0u);
}

// A process that can write to all of the memory can also lock all of it with
// fcntl.
TEST_F(AttachmentsTest, WhoLocksTheMemoryKeepsNobodyOutAndEndsNobodysHold) {
  std::vector<SharedDescriptor> hostile = Attach(kNotVisible);
  for (const SharedDescriptor& shard : hostile) {
    struct flock all = {};
    all.l_type = F_WRLCK;
    ASSERT_EQ(fcntl(shard.fd.get(), F_OFD_SETLK, &all), 0);
  }
  Child worker;
  Attach(worker.pid());
  LoseSession();
  hostile.clear();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(HeldPages(), kReserved);
  worker.Kill();
  AwaitFree();
}

TEST_F(AttachmentsTest, TheProcessOfAWriterIsNamedWhileItLives) {
  Child worker;
  const std::vector<SharedDescriptor> shards = Attach(worker.pid());
  LoseSession();
  const WriterId writer = cache_.ListQuarantine(1).sessions.at(0).writers.at(0);
  EXPECT_THAT(attachments_->PidOf(writer), Optional(worker.pid()));
  worker.Kill();
  while (attachments_->PidOf(writer).has_value()) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(HeldPages(), kReserved);
}

}  // namespace
}  // namespace pando
