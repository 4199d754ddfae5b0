#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "pando/v1/prefix_cache.grpc.pb.h"
#include "replay/floor.h"

namespace pando::replay {
namespace {

constexpr std::chrono::seconds kConnectTimeout{10};

absl::Status ToStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("echo server: ", status.error_message()));
}

// Makes the calls with the bare gRPC stub. The messages keep their memory from
// call to call.
class EchoFloor : public Floor {
 public:
  explicit EchoFloor(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::PrefixCache::NewStub(channel)) {}

  absl::Status Run(std::span<const Token> sent,
                   uint32_t inserted_pages) override {
    auto& tokens = *admission_.mutable_tokens();
    tokens.Resize(static_cast<int>(sent.size()), 0);
    std::memcpy(tokens.mutable_data(), sent.data(), sent.size_bytes());
    grpc::ClientContext admit;
    RETURN_IF_ERROR(
        ToStatus(stub_->MatchPrefix(&admit, admission_, &admitted_)));
    finish_.mutable_page_ids()->Resize(static_cast<int>(inserted_pages), 1);
    grpc::ClientContext finish;
    return ToStatus(stub_->Insert(&finish, finish_, &finished_));
  }

 private:
  const std::unique_ptr<v1::PrefixCache::Stub> stub_;
  v1::MatchPrefixRequest admission_;
  v1::MatchPrefixResponse admitted_;
  v1::InsertRequest finish_;
  v1::InsertResponse finished_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Floor>> ConnectEchoFloor(
    const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  const std::shared_ptr<grpc::Channel> channel = grpc::CreateCustomChannel(
      address, grpc::InsecureChannelCredentials(), arguments);
  if (!channel->WaitForConnected(std::chrono::system_clock::now() +
                                 kConnectTimeout)) {
    return absl::UnavailableError(absl::StrCat("no echo server at ", address));
  }
  return std::make_unique<EchoFloor>(channel);
}

}  // namespace pando::replay
