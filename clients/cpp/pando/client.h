// The C++ client of pandod: attach a worker to the cache.
#ifndef PANDO_CLIENT_H_
#define PANDO_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "pando/batch.h"
#include "pando/errors.h"
#include "pando/events.h"
#include "pando/lock.h"
#include "pando/mapped_pool.h"
#include "pando/pool.h"
#include "pando/requests.h"
#include "pando/stats.h"
#include "pando/tls.h"
#include "pando/types.h"

namespace pando {
inline namespace client {

class Exchange;

struct ConnectOptions {
  // "unix:/path", "/path" or "host:port".
  std::string address = {};
  // Shown to operators, for example "sglang rank 0". At most 128 bytes.
  std::string name = {};
  // Deadline of each call; MatchOptions::pending_wait adds to it. Connect waits
  // as long for a server to come up.
  absl::Duration timeout = absl::Seconds(5);
  // Called, on a thread of the client, when a session is lost: every lock and
  // page id obtained before is void. It may use the client but not destroy it.
  // Once nothing is written to the session's pages any more, EndSession makes
  // them free.
  std::function<void()> on_session_lost = nullptr;
  // Needed where the server has a certificate.
  std::optional<TlsFiles> tls = {};
  // The bearer token, where the server recognises its callers by one; only TLS
  // keeps it secret on the way. Empty: none.
  std::string token = {};
  // Whether to ask for a lane: shared memory that carries the calls of the data
  // path much faster than gRPC. Only over a Unix socket.
  bool lane = true;
};

// How the calls of the data path travel.
enum class Transport { kGrpc, kLane };

struct AttachOptions {
  // What the worker computes with. The pool is not mapped when it differs; what
  // is unset is taken as the server has it.
  std::optional<KvLayout> expected_layout = {};
  std::optional<std::string> model = {};
  // Where each shard is mapped if that is free: the addresses of a mapping that
  // is gone, which CUDA graphs still hold.
  std::vector<std::byte*> addresses = {};
};

// A worker's attachment to pandod: one connection and one session.
//
// Owned by the caller. The session keeps itself alive: when the connection
// breaks it is resumed, and when it cannot be (pandod restarted, or was away
// for too long) a new one is opened. Calls that carry locks or pages of a lost
// session fail with reason SESSION_LOST; while pandod is away every call fails
// with UNAVAILABLE.
//
// A failed call changed nothing, with two exceptions. Where the connection
// breaks under a call that changes something, the call is repeated for most of
// a second, and the server acts on it once; only when that ends with
// UNAVAILABLE, and after DEADLINE_EXCEEDED, one cannot know: what the call may
// have locked or reserved is then given back in the background, and what it may
// have released or freed must not be used again.
//
// The destructor ends the session, which releases what it holds. Thread-safe.
class Client {
 public:
  static absl::StatusOr<std::unique_ptr<Client>> Connect(
      ConnectOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // The present session; zero while there is none.
  uint64_t session_id() const;
  // The boot of pandod that the session belongs to; zero while there is none.
  uint64_t epoch() const;

  // How MatchPrefix, MatchPrefixes, Insert, TakeLock, Unlock, AllocatePages,
  // FreePages and GetStats go at present. One that does not fit into the lane
  // goes over gRPC nevertheless.
  Transport transport() const;
  // Why that is not the lane; OK: it is.
  absl::Status why_no_lane() const;

  // What the cache holds at present, as of one moment. With a lane it is read
  // from memory, without a call.
  absl::StatusOr<Gauges> ReadGauges();

  // Calls that go together.
  Batch NewBatch() { return Batch(this); }

  // As the last answer of MatchPrefix, Insert or AllocatePages told it; zeros
  // before the first one.
  PageRoom room() const;

  // Finds the longest cached prefix of the prompt; on request locks it and
  // reserves pages for the rest, all or nothing. The admission of a request.
  //
  // With MatchOptions::after the prompt is given whole as well, and what the
  // handle stands for is not sent. A handle that is gone is no error: the call
  // is made again without it. So the block table always is the first
  // Match::first_page pages that the caller knows the prefix by, then page_ids,
  // then the reserved ones.
  absl::StatusOr<Match> MatchPrefix(std::span<const Token> tokens,
                                    const MatchOptions& options = {});

  // Matches the prompts of a waiting queue: a score for each, in order. Changes
  // nothing, not even what was recently used. At most 4,096 queries; the
  // server's limit on tokens holds for all of them together.
  absl::StatusOr<std::vector<PrefixScore>> MatchPrefixes(
      std::span<const PrefixQuery> queries);

  // Publishes pages under a prefix: page_ids[i] holds the KV of the i-th whole
  // page of tokens, complete on the device. With LockAction::kUnlock the
  // finish of a request. A lock that the server does not know is dropped. In a
  // bigram namespace n tokens are n - 1 units, and a whole page is one of
  // units.
  absl::StatusOr<InsertResult> Insert(std::span<const Token> tokens,
                                      std::span<const PageId> page_ids,
                                      const InsertOptions& options);

  // Locks the longest cached prefix.
  absl::StatusOr<Lock> TakeLock(std::span<const Token> tokens,
                                const LockOptions& options = {});

  // Releases many locks in one call, all or nothing; they must be of one
  // session. For a single one there is Lock::Release.
  absl::Status Unlock(std::span<Lock> locks);

  // Frees up to `pages` evictable pages; returns how many it freed.
  absl::StatusOr<uint32_t> Evict(uint32_t pages);

  // Reserves pages, evicting as needed. All or nothing; with `at_least` as many
  // as there is room for, but not fewer than that. They count for the quota of
  // the namespace.
  absl::StatusOr<ReservedPages> AllocatePages(
      uint32_t pages, const Namespace& ns = {},
      std::optional<uint32_t> at_least = {});

  // Gives reserved pages back; all or nothing.
  absl::Status FreePages(const ReservedPages& pages);

  // Says of a session that was lost while this process lives on: nothing of it
  // writes any more to the pages that the session had reserved, no kernel on
  // the device either. Until it says so, has unmapped the pool of that session,
  // or has ended, nobody gets these pages.
  absl::Status EndSession(uint64_t session_id);

  absl::StatusOr<PoolDescription> DescribePool();

  // Maps the pool into this process; LAYOUT_MISMATCH when it is not what the
  // worker expects.
  absl::StatusOr<MappedPool> AttachPool(const AttachOptions& options = {});

  // Says that this process writes pages that another process of its engine has
  // reserved in that session, its client's session_id(). When that session is
  // lost, its pages are not given to others before this client or its process
  // is gone, too; where pandod cannot tell that, before a time has passed. Who
  // knows a session's id may act in its name.
  absl::Status LinkSession(uint64_t session_id);

  absl::StatusOr<Stats> GetStats();

  // Evicts everything that is not locked.
  absl::StatusOr<FlushResult> Flush();
  // The same in one namespace.
  absl::StatusOr<FlushResult> Flush(const Namespace& ns);

  // Changes the order of eviction of the live cache; nothing is lost. Returns
  // the policy before.
  absl::StatusOr<std::string> SetEvictionPolicy(const std::string& policy);

  // What enters and leaves the cache from now on, after a snapshot:
  // AllBlocksCleared, what is cached, SnapshotEnd.
  std::unique_ptr<EventWatch> WatchEvents(const WatchOptions& options = {});

  // The invariants of the index that do not hold; empty when all is well.
  absl::StatusOr<std::vector<std::string>> CheckInvariants();

 private:
  friend class Batch;

  explicit Client(std::shared_ptr<Connection> connection);

  // The calls of the same names, whose first exchange a batch may have.
  absl::StatusOr<Match> MatchPrefix(std::span<const Token> tokens,
                                    const MatchOptions& options,
                                    Exchange* exchange);
  absl::StatusOr<InsertResult> Insert(std::span<const Token> tokens,
                                      std::span<const PageId> page_ids,
                                      const InsertOptions& options,
                                      Exchange* exchange);
  absl::StatusOr<Lock> TakeLock(std::span<const Token> tokens,
                                const LockOptions& options, Exchange* exchange);
  absl::Status Unlock(std::span<Lock> locks, Exchange* exchange);
  absl::StatusOr<ReservedPages> AllocatePages(uint32_t pages,
                                              const Namespace& ns,
                                              std::optional<uint32_t> at_least,
                                              Exchange* exchange);
  absl::Status FreePages(const ReservedPages& pages, Exchange* exchange);

  // Shared with the locks, which only hold it weakly.
  const std::shared_ptr<Connection> connection_;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENT_H_
