#include "tiers/redis/redis_client.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "os/monotonic_clock.h"
#include "tiers/redis/socket_stream.h"

namespace pando {
namespace {

// How often a command follows a redirection to another node.
constexpr int kMaxRedirections = 3;

bool IsError(const absl::StatusOr<RespReply>& reply) {
  return reply.ok() && reply->kind == RespReply::Kind::kError;
}

// A replica answers so: the address may lead to another server by now.
bool IsOfReplica(const absl::StatusOr<RespReply>& reply) {
  return IsError(reply) && absl::StartsWith(reply->text, "READONLY");
}

}  // namespace

RedisClient::RedisClient(std::vector<RedisAddress> seeds, RedisLogin login)
    : seeds_(std::move(seeds)), nodes_(std::move(login)), known_(seeds_) {}

void RedisClient::Run(std::span<RedisCommand> commands, absl::Time deadline) {
  if (commands.empty()) return;
  const absl::StatusOr<Slots> slots = FindSlots(deadline);
  std::vector<Errand> errands;
  for (RedisCommand& command : commands) {
    if (!slots.ok()) {
      command.reply = slots.status();
    } else if (const RedisAddress* node = (*slots)->NodeOf(command.key)) {
      errands.push_back({&command, *node});
    } else {
      command.reply = absl::UnavailableError("no node has this key's slot");
      ForgetSlots();
    }
  }
  for (int i = 0; i <= kMaxRedirections && !errands.empty(); ++i) {
    std::ranges::stable_sort(errands, {}, &Errand::node);
    RunErrands(errands, deadline);
    errands = Redirected(errands);
  }
}

void RedisClient::RunErrands(std::span<Errand> errands, absl::Time deadline) {
  struct Sent {
    std::span<Errand> errands;
    std::unique_ptr<RedisConnection> connection;
  };
  std::vector<Sent> sent;
  while (!errands.empty()) {
    const RedisAddress& node = errands.front().node;
    const auto next = std::ranges::find_if(
        errands, [&](const Errand& errand) { return errand.node != node; });
    const auto count = static_cast<size_t>(next - errands.begin());
    absl::StatusOr<std::unique_ptr<RedisConnection>> connection =
        Send(errands.first(count), deadline);
    if (connection.ok()) {
      sent.push_back({errands.first(count), *std::move(connection)});
    } else {
      nodes_.Forget(node);
      Fail(errands.first(count), connection.status());
    }
    errands = errands.subspan(count);
  }
  for (Sent& one : sent) {
    Receive(one.errands, std::move(one.connection), deadline);
  }
}

absl::StatusOr<std::unique_ptr<RedisConnection>> RedisClient::Send(
    std::span<Errand> errands, absl::Time deadline) {
  static const auto* const asking = new RespRequest({"ASKING"});
  // A node that cannot be reached must leave time for the others.
  ASSIGN_OR_RETURN(std::unique_ptr<RedisConnection> connection,
                   nodes_.Take(errands.front().node, HalfwayTo(deadline)));
  std::vector<iovec> parts;
  for (const Errand& errand : errands) {
    if (errand.is_asking) asking->AppendTo(parts);
    errand.command->request.AppendTo(parts);
  }
  RETURN_IF_ERROR(connection->Send(std::move(parts), deadline));
  return connection;
}

void RedisClient::Receive(std::span<Errand> errands,
                          std::unique_ptr<RedisConnection> connection,
                          absl::Time deadline) {
  RespReader& replies = connection->replies();
  bool is_primary = true;
  for (size_t i = 0; i < errands.size(); ++i) {
    RedisCommand& command = *errands[i].command;
    absl::StatusOr<RespReply> reply = RespReply();
    const size_t max_bytes = RespReader::kMaxShortReply;
    if (errands[i].is_asking) reply = replies.Read(max_bytes, deadline);
    if (reply.ok()) {
      reply = command.value.empty() ? replies.Read(max_bytes, deadline)
                                    : replies.ReadInto(command.value, deadline);
    }
    command.reply = std::move(reply);
    is_primary = is_primary && !IsOfReplica(command.reply);
    if (command.reply.ok()) continue;
    nodes_.Forget(errands[i].node);
    ForgetSlots();
    Fail(errands.subspan(i + 1),
         absl::UnavailableError("a connection to the shared store was closed"));
    return;
  }
  if (is_primary) {
    nodes_.GiveBack(errands.front().node, std::move(connection));
  } else {
    nodes_.Forget(errands.front().node);
  }
}

void RedisClient::Fail(std::span<Errand> errands, const absl::Status& status) {
  ForgetSlots();
  for (Errand& errand : errands) errand.command->reply = status;
}

std::vector<RedisClient::Errand> RedisClient::Redirected(
    std::span<Errand> errands) {
  std::vector<Errand> redirected;
  for (const Errand& errand : errands) {
    if (!IsError(errand.command->reply)) continue;
    const std::optional<RedisRedirection> redirection =
        RedisRedirection::Parse(errand.command->reply->text, errand.node);
    if (!redirection.has_value()) continue;
    if (!redirection->is_asking) ForgetSlots();
    redirected.push_back(
        {errand.command, redirection->node, redirection->is_asking});
  }
  return redirected;
}

absl::StatusOr<std::vector<RedisAddress>> RedisClient::FindNodes(
    absl::Time deadline) {
  ForgetSlots();
  ASSIGN_OR_RETURN(const Slots slots, FindSlots(deadline));
  return slots->nodes();
}

absl::StatusOr<RespReply> RedisClient::Ask(const RedisAddress& node,
                                           const RespRequest& request,
                                           absl::Time deadline) {
  ASSIGN_OR_RETURN(std::unique_ptr<RedisConnection> connection,
                   nodes_.Take(node, deadline));
  std::vector<iovec> parts;
  request.AppendTo(parts);
  RETURN_IF_ERROR(connection->Send(std::move(parts), deadline));
  ASSIGN_OR_RETURN(RespReply reply,
                   connection->replies().Read(RespReader::kMaxReply, deadline));
  nodes_.GiveBack(node, std::move(connection));
  return reply;
}

void RedisClient::ForgetSlots() {
  absl::MutexLock hold(&mutex_);
  slots_ = nullptr;
}

absl::StatusOr<RedisClient::Slots> RedisClient::FindSlots(absl::Time deadline) {
  {
    absl::MutexLock hold(&mutex_);
    if (slots_ != nullptr) return slots_;
  }
  std::vector<RedisAddress> nodes;
  {
    absl::MutexLock hold(&mutex_);
    nodes = known_;
  }
  absl::Status status = absl::DeadlineExceededError("the shared store is slow");
  for (const RedisAddress& node : nodes) {
    if (MonotonicNow() >= deadline) break;
    // A node that does not answer must leave time to ask the next one.
    absl::StatusOr<RedisSlots> slots = AskForSlots(
        node, node == nodes.back() ? deadline : HalfwayTo(deadline));
    if (slots.ok()) return Remember(node, *std::move(slots));
    status = slots.status();
    absl::MutexLock hold(&mutex_);
    const auto found = std::ranges::find(known_, node);
    if (found != known_.end()) std::rotate(found, found + 1, known_.end());
  }
  return status;
}

RedisClient::Slots RedisClient::Remember(const RedisAddress& answered,
                                         RedisSlots slots) {
  absl::MutexLock hold(&mutex_);
  slots_ = std::make_shared<RedisSlots>(std::move(slots));
  known_ = {answered};
  for (const auto* nodes : {&slots_->nodes(), &seeds_}) {
    for (const RedisAddress& node : *nodes) {
      if (std::ranges::find(known_, node) == known_.end()) {
        known_.push_back(node);
      }
    }
  }
  return slots_;
}

absl::StatusOr<RedisSlots> RedisClient::AskForSlots(const RedisAddress& node,
                                                    absl::Time deadline) {
  static const auto* const cluster_slots =
      new RespRequest({"CLUSTER", "SLOTS"});
  ASSIGN_OR_RETURN(const RespReply reply, Ask(node, *cluster_slots, deadline));
  if (reply.kind != RespReply::Kind::kError) {
    return RedisSlots::Parse(reply, node);
  }
  if (absl::StrContains(reply.text, "cluster support disabled")) {
    return RedisSlots(node);
  }
  return ErrorOf(reply);
}

}  // namespace pando
