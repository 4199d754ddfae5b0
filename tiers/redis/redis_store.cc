#include "tiers/redis/redis_store.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "os/monotonic_clock.h"

namespace pando {
namespace {

// So many commands without values are sent at once. If the deadline passes, the
// rest is not sent.
constexpr size_t kCommandsAtOnce = 512;
constexpr absl::Duration kEraseTimeout = absl::Seconds(1);
// The first is for all blocks of a node, the second for each of the many calls
// that this takes.
constexpr absl::Duration kEraseAllTimeout = absl::Minutes(10);
constexpr absl::Duration kScanTimeout = absl::Seconds(5);
constexpr std::string_view kScannedAtOnce = "1000";

absl::Status Unexpected() {
  return absl::UnavailableError("the shared store sent an unexpected reply");
}

// Returns OK if the reply is of `kind`, else an error.
absl::Status Expect(RespReply::Kind kind,
                    const absl::StatusOr<RespReply>& reply) {
  if (!reply.ok()) return reply.status();
  if (reply->kind == kind) return absl::OkStatus();
  return reply->kind == RespReply::Kind::kError ? ErrorOf(*reply)
                                                : Unexpected();
}

absl::Status StatusOfGet(const absl::StatusOr<RespReply>& reply) {
  if (!reply.ok()) return reply.status();
  switch (reply->kind) {
    case RespReply::Kind::kNull:
      return absl::NotFoundError("not there");
    case RespReply::Kind::kOtherLength:
      return absl::DataLossError("its length differs");
    default:
      // A key of this name with another type is not from pandod.
      if (absl::StartsWith(reply->text, "WRONGTYPE")) {
        return absl::DataLossError("its type differs");
      }
      return Expect(RespReply::Kind::kValue, reply);
  }
}

absl::Time Earlier(absl::Duration timeout, absl::Time deadline) {
  return std::min(MonotonicNow() + timeout, deadline);
}

absl::StatusOr<RedisLogin> LoginOf(const RedisStore::Config& config) {
  RedisLogin login{.user = config.user,
                   .password_file = config.password_file,
                   .tls = nullptr};
  if (config.seeds.front().has_tls) {
    ASSIGN_OR_RETURN(login.tls, MakeSslContext(config.tls));
  }
  return login;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RedisStore>> RedisStore::Open(Config config,
                                                             uint64_t digest) {
  ASSIGN_OR_RETURN(RedisLogin login, LoginOf(config));
  return absl::WrapUnique(new RedisStore(std::move(config.seeds),
                                         std::move(login), config.ttl, digest));
}

RedisStore::RedisStore(std::vector<RedisAddress> seeds, RedisLogin login,
                       absl::Duration ttl, uint64_t digest)
    : ttl_(ttl),
      prefix_(absl::StrFormat("pando:1:%016x:", digest)),
      client_(std::move(seeds), std::move(login)) {}

std::string RedisStore::PrefixOf(std::optional<uint64_t> ns_digest) const {
  if (!ns_digest.has_value()) return prefix_;
  return absl::StrFormat("%s%016x:", prefix_, *ns_digest);
}

std::string RedisStore::NameOf(const BlockKey& key) const {
  return absl::StrCat(
      PrefixOf(key.ns_digest),
      absl::BytesToHexString(absl::string_view(
          reinterpret_cast<const char*>(key.hash.data()), key.hash.size())));
}

// The time is absolute, by this machine's clock, so that blocks keep their
// order however long the commands take.
std::string RedisStore::ExpiryOf(const BlockKey& key, absl::Time used) const {
  return absl::StrCat(
      absl::ToUnixMillis(used + ttl_ - absl::Milliseconds(key.ordinal)));
}

absl::StatusOr<RemoteStore::Presence> RedisStore::CountPresent(
    std::span<const BlockKey> keys, absl::Time deadline) {
  size_t present = 0;
  while (present < keys.size() && MonotonicNow() < deadline) {
    std::vector<RedisCommand> commands;
    for (const BlockKey& key : keys.subspan(
             present, std::min(kCommandsAtOnce, keys.size() - present))) {
      const std::string name = NameOf(key);
      commands.push_back({name, RespRequest({"EXISTS", name})});
    }
    client_.Run(commands, deadline);
    for (const RedisCommand& command : commands) {
      const absl::Status status =
          Expect(RespReply::Kind::kInteger, command.reply);
      // An error after the first block, such as a node that is gone, ends the
      // run as a missing block does.
      if (!status.ok() && present == 0) return status;
      if (!status.ok()) return Presence{.blocks = present};
      if (command.reply->integer != 1) {
        return Presence{.blocks = present, .lacks_next = true};
      }
      ++present;
    }
  }
  return Presence{.blocks = present};
}

void RedisStore::Get(std::span<Transfer> blocks, absl::Time deadline) {
  std::vector<RedisCommand> commands;
  for (const Transfer& block : blocks) {
    const std::string name = NameOf(block.key);
    commands.push_back({name, RespRequest({"GET", name}), block.value});
  }
  client_.Run(commands, deadline);
  for (size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].status = StatusOfGet(commands[i].reply);
  }
}

void RedisStore::Put(std::span<Transfer> blocks, absl::Time used,
                     absl::Time deadline) {
  std::vector<RedisCommand> commands;
  for (const Transfer& block : blocks) {
    const std::string name = NameOf(block.key);
    RespRequest request(5);
    request.Add("SET");
    request.Add(name);
    request.AddValue(block.value);
    request.Add("PXAT");
    request.Add(ExpiryOf(block.key, used));
    commands.push_back({name, std::move(request)});
  }
  client_.Run(commands, deadline);
  for (size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].status = Expect(RespReply::Kind::kText, commands[i].reply);
  }
}

// The last blocks of a prompt are touched first, because servers that evict by
// recency would otherwise evict its front first.
absl::StatusOr<std::vector<bool>> RedisStore::Touch(
    std::span<const BlockKey> keys, absl::Time used, absl::Time deadline) {
  std::vector<bool> are_present(keys.size());
  size_t end = keys.size();
  while (end > 0 && MonotonicNow() < deadline) {
    std::vector<RedisCommand> commands;
    const size_t begin = end - std::min(kCommandsAtOnce, end);
    for (size_t i = end; i-- > begin;) {
      const std::string name = NameOf(keys[i]);
      commands.push_back(
          {name, RespRequest({"PEXPIREAT", name, ExpiryOf(keys[i], used)})});
    }
    client_.Run(commands, deadline);
    for (size_t i = begin; i < end; ++i) {
      const RedisCommand& command = commands[end - 1 - i];
      RETURN_IF_ERROR(Expect(RespReply::Kind::kInteger, command.reply));
      are_present[i] = command.reply->integer == 1;
    }
    end = begin;
  }
  return are_present;
}

absl::Status RedisStore::Erase(const BlockKey& key) {
  return EraseNames({{NameOf(key)}}, MonotonicNow() + kEraseTimeout);
}

absl::Status RedisStore::EraseNames(std::span<const std::string> names,
                                    absl::Time deadline) {
  std::vector<RedisCommand> commands;
  for (const std::string& name : names) {
    commands.push_back({name, RespRequest({"UNLINK", name})});
  }
  client_.Run(commands, deadline);
  for (const RedisCommand& command : commands) {
    RETURN_IF_ERROR(Expect(RespReply::Kind::kInteger, command.reply));
  }
  return absl::OkStatus();
}

absl::Status RedisStore::EraseAll(std::optional<uint64_t> ns_digest) {
  ASSIGN_OR_RETURN(const std::vector<RedisAddress> nodes,
                   client_.FindNodes(MonotonicNow() + kScanTimeout));
  for (const RedisAddress& node : nodes) {
    RETURN_IF_ERROR(EraseAllOf(node, PrefixOf(ns_digest),
                               MonotonicNow() + kEraseAllTimeout));
  }
  return absl::OkStatus();
}

// Scans all keys of a node, a part at a time, so that the node serves other
// clients meanwhile.
absl::Status RedisStore::EraseAllOf(const RedisAddress& node,
                                    const std::string& prefix,
                                    absl::Time deadline) {
  std::string cursor = "0";
  do {
    const absl::StatusOr<RespReply> reply = client_.Ask(
        node,
        RespRequest({"SCAN", cursor, "MATCH", absl::StrCat(prefix, "*"),
                     "COUNT", kScannedAtOnce}),
        Earlier(kScanTimeout, deadline));
    RETURN_IF_ERROR(Expect(RespReply::Kind::kArray, reply));
    if (reply->elements.size() != 2) return Unexpected();
    cursor = reply->elements[0].text;
    std::vector<std::string> names;
    for (const RespReply& name : reply->elements[1].elements) {
      if (!absl::StartsWith(name.text, prefix)) return Unexpected();
      names.push_back(name.text);
    }
    RETURN_IF_ERROR(EraseNames(names, Earlier(kScanTimeout, deadline)));
  } while (cursor != "0");
  return absl::OkStatus();
}

}  // namespace pando
