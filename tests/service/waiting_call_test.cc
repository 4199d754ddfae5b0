// Tests calls that wait because their handler has no answer yet, through a real
// server and channel.

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <list>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "pando/v1/prefix_cache.grpc.pb.h"
#include "service/calls/method_metrics.h"
#include "service/rpc/async_service.h"
#include "service/rpc/rpc_server.h"
#include "service/rpc/unary_call.h"

namespace pando {
namespace {

// How many calls wait in the handler below, and how many were cancelled there.
struct Seen {
  int waiting = 0;
  int cancelled = 0;
};

// A server for MatchPrefix. A call that asks for a lock waits until the test
// lets calls go. The answer is the number of tokens of the request.
class WaitingServer {
 public:
  WaitingServer() {
    std::string folder =
        (std::filesystem::temp_directory_path() / "pando_waiting_XXXXXX")
            .string();
    folder_ = mkdtemp(folder.data());
    const std::string path = folder_ + "/grpc.sock";
    address_ = "unix:" + path;
    server_.AddService(&grpc_);
    ServeMethod(server_, grpc_, metrics_,
                MakeMethod<v1::PrefixCache>(this, &WaitingServer::Handle));
    wakeup_ = server_.AddWakeup([this] { ResumeAll(); });
    EXPECT_TRUE(
        server_.Start({.socket = {path}, .max_receive_bytes = 1 << 20}).ok());
  }
  ~WaitingServer() {
    server_.Shutdown(absl::ZeroDuration());
    std::filesystem::remove_all(folder_);
  }

  const std::string& address() const { return address_; }
  void LetGo() {
    is_open_ = true;
    wakeup_->Request();
  }
  void LetNobodyGo() {
    is_open_ = false;
    wakeup_->Request();
  }
  void Shutdown() { server_.Shutdown(absl::ZeroDuration()); }
  // Waits until `condition` holds for the counts, and returns them.
  template <typename Condition>
  Seen Await(Condition condition) {
    absl::MutexLock hold(&mutex_);
    auto holds = [&] {
      mutex_.AssertReaderHeld();
      return condition(seen_);
    };
    mutex_.Await(absl::Condition(&holds));
    return seen_;
  }
  // Returns the counts of MatchPrefix, which is the only method.
  MethodFigures Figures() const { return metrics_.Figures().front(); }

 private:
  std::optional<absl::Status> Handle(const v1::MatchPrefixRequest& request,
                                     v1::MatchPrefixResponse& response,
                                     WaitingCall& call) {
    absl::MutexLock hold(&mutex_);
    if (call.is_cancelled()) {
      ++seen_.cancelled;
      --seen_.waiting;
      waiting_.remove(&call);
      return absl::CancelledError("the caller is gone");
    }
    if (request.lock() && !is_open_) {
      const auto known = std::find(waiting_.begin(), waiting_.end(), &call);
      if (known == waiting_.end()) {
        waiting_.push_back(&call);
        ++seen_.waiting;
      }
      return std::nullopt;
    }
    response.set_matched_tokens(static_cast<uint32_t>(request.tokens_size()));
    return absl::OkStatus();
  }

  void ResumeAll() {
    std::list<WaitingCall*> resumed;
    {
      absl::MutexLock hold(&mutex_);
      resumed = waiting_;
      if (is_open_) {
        waiting_.clear();
        seen_.waiting = 0;
      }
    }
    for (WaitingCall* call : resumed) call->Resume();
  }

  RpcMetrics metrics_;
  AsyncService<v1::PrefixCache> grpc_;
  std::string folder_;
  std::string address_;
  std::atomic<bool> is_open_ = false;
  Wakeup* wakeup_;
  absl::Mutex mutex_;
  Seen seen_ ABSL_GUARDED_BY(mutex_);
  std::list<WaitingCall*> waiting_ ABSL_GUARDED_BY(mutex_);
  CallPolicy policy_;
  // The server is the last member, so that its calls are gone before the
  // members that they use.
  RpcServer server_{&policy_};
};

// A MatchPrefix call that runs while other calls are made.
class Call {
 public:
  Call(v1::PrefixCache::Stub& stub, int tokens, bool lock) {
    for (int i = 0; i < tokens; ++i) request_.add_tokens(7);
    request_.set_lock(lock);
    stub.async()->MatchPrefix(&context_, &request_, &response_,
                              [this](grpc::Status status) {
                                status_ = std::move(status);
                                done_.Notify();
                              });
  }
  ~Call() { done_.WaitForNotification(); }

  grpc::Status Wait() {
    done_.WaitForNotification();
    return status_;
  }
  bool is_done() const { return done_.HasBeenNotified(); }
  uint32_t matched_tokens() const { return response_.matched_tokens(); }
  void Cancel() { context_.TryCancel(); }

 private:
  grpc::ClientContext context_;
  v1::MatchPrefixRequest request_;
  v1::MatchPrefixResponse response_;
  grpc::Status status_;
  absl::Notification done_;
};

class WaitingCallTest : public testing::Test {
 protected:
  WaitingCallTest()
      : stub_(v1::PrefixCache::NewStub(grpc::CreateChannel(
            server_.address(), grpc::InsecureChannelCredentials()))) {}

  std::unique_ptr<Call> Start(int tokens, bool lock) {
    return std::make_unique<Call>(*stub_, tokens, lock);
  }

  WaitingServer server_;
  std::unique_ptr<v1::PrefixCache::Stub> stub_;
};

TEST_F(WaitingCallTest, IsAnsweredWhenItsHandlerIsRunAgain) {
  Call call(*stub_, 5, true);
  server_.Await([](const Seen& seen) { return seen.waiting == 1; });
  EXPECT_FALSE(call.is_done());
  server_.LetGo();
  EXPECT_TRUE(call.Wait().ok());
  EXPECT_EQ(call.matched_tokens(), 5u);
}

TEST_F(WaitingCallTest, MayWaitAgain) {
  Call call(*stub_, 5, true);
  server_.Await([](const Seen& seen) { return seen.waiting == 1; });
  server_.LetNobodyGo();
  EXPECT_TRUE(Call(*stub_, 1, false).Wait().ok());
  EXPECT_FALSE(call.is_done());
  server_.LetGo();
  EXPECT_TRUE(call.Wait().ok());
  EXPECT_EQ(call.matched_tokens(), 5u);
}

TEST_F(WaitingCallTest, KeepsNoOtherCallFromBeingAnswered) {
  constexpr int kWaiting = 10 * kArmedCalls;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<Call>> waiting;
    for (int i = 0; i < kWaiting; ++i) waiting.push_back(Start(i, true));
    server_.Await([](const Seen& seen) { return seen.waiting == kWaiting; });
    EXPECT_TRUE(Start(1, false)->Wait().ok());
    server_.LetGo();
    for (int i = 0; i < kWaiting; ++i) {
      EXPECT_TRUE(waiting[i]->Wait().ok());
      EXPECT_EQ(waiting[i]->matched_tokens(), static_cast<uint32_t>(i));
    }
    server_.LetNobodyGo();
  }
}

TEST_F(WaitingCallTest, IsToldWhenItsCallerCancels) {
  Call call(*stub_, 5, true);
  server_.Await([](const Seen& seen) { return seen.waiting == 1; });
  call.Cancel();
  EXPECT_EQ(call.Wait().error_code(), grpc::StatusCode::CANCELLED);
  const Seen seen =
      server_.Await([](const Seen& now) { return now.cancelled == 1; });
  EXPECT_EQ(seen.waiting, 0);
}

TEST_F(WaitingCallTest, DoesNotKeepTheServerFromStopping) {
  auto call = Start(5, true);
  server_.Await([](const Seen& seen) { return seen.waiting == 1; });
  server_.Shutdown();
  EXPECT_FALSE(call->Wait().ok());
  EXPECT_EQ(server_.Await([](const Seen&) { return true; }).cancelled, 1);
}

TEST_F(WaitingCallTest, AWakeupAfterTheEndDoesNothing) {
  server_.Shutdown();
  server_.LetGo();
}

TEST_F(WaitingCallTest, IsCountedOnce) {
  Call call(*stub_, 5, true);
  server_.Await([](const Seen& seen) { return seen.waiting == 1; });
  server_.LetGo();
  EXPECT_TRUE(call.Wait().ok());
  const MethodFigures figures = server_.Figures();
  ASSERT_EQ(figures.transports.size(), 1u);
  const TransportFigures& grpc = figures.transports.front();
  EXPECT_EQ(grpc.started, 1u);
  EXPECT_EQ(std::accumulate(grpc.handled.begin(), grpc.handled.end(), 0u), 1u);
  const auto counts = figures.seconds.View().counts;
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0u), 1u);
}

}  // namespace
}  // namespace pando
