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
#include "pando/blocks.h"
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
  // "unix:/path", "/path" or "host:port". If it is empty, the environment
  // variable PANDO_ADDRESS gives the address; without that, the client uses
  // the default socket.
  std::string address = {};
  // A name for operators, for example "sglang rank 0". At most 128 bytes.
  std::string name = {};
  // The deadline of each call; MatchOptions::pending_wait is added to it.
  // Connect waits as long for a server to come up.
  absl::Duration timeout = absl::Seconds(5);
  // Called on a thread of the client when the session is lost: all its locks
  // and page ids are void. The function may use the client but must not destroy
  // it. Once nothing writes to the pages of the lost session any more, call
  // EndSession, so that they are freed.
  std::function<void()> on_session_lost = nullptr;
  // Must be set if the server has a certificate.
  std::optional<TlsFiles> tls = {};
  // The bearer token by which the server recognises this client; empty if it
  // has none. Only TLS keeps it secret on the way.
  std::string token = {};
  // Whether to ask for a lane: shared memory that carries the calls of the data
  // path much faster than gRPC. Only over a Unix socket.
  bool lane = true;
};

// How the calls travel that an engine makes for each request.
enum class Transport { kGrpc, kLane };

struct AttachOptions {
  // The layout and the model that the worker computes with. AttachPool fails
  // with LAYOUT_MISMATCH if those of the pool differ; an unset one is not
  // compared. Strides need not be set: without them the layout fits a pool of
  // any size. An open pool takes both as its own.
  std::optional<KvLayout> expected_layout = {};
  std::optional<std::string> model = {};
  // The shards to map; all if it is empty. A tensor-parallel rank r uses shard
  // r, and should map no other: the device of each mapped shard must be visible
  // to this process, and this process makes a CUDA context on it.
  std::vector<uint32_t> shards = {};
  // The address at which to map each shard of the pool; null, or an empty list,
  // means any address. It is for a worker that attaches again while its CUDA
  // graphs still hold the old addresses. AttachPool fails with
  // FAILED_PRECONDITION if an address is not free.
  std::vector<std::byte*> addresses = {};
};

// A worker's connection to pandod, and its session. A request takes two calls:
//
//   auto client = pando::Client::Connect(
//       {.address = "unix:/run/pando/pando.sock", .name = "my engine"});
//   auto pool = (*client)->AttachPool();       // map the memory, once
//
//   // Admission: find the cached prefix, lock it, and reserve pages for the
//   // rest. The match is capped, because at least one token must be computed.
//   auto match = (*client)->MatchPrefix(
//       prompt, {.max_tokens = prompt_tokens - 1, .lock = true,
//                .reserve_tokens = prompt_tokens + max_new_tokens});
//   // ... read match->page_ids, write the KV of the rest into
//   // match->reserved.ids, generate ...
//
//   // Finish: publish the whole pages, release the lock, free what is left.
//   // `tokens` and `page_ids` begin where the lock ends: lock.tokens().
//   (*client)->Insert(tokens, page_ids,
//                     {.lock = &match->lock,
//                      .lock_action = pando::LockAction::kUnlock,
//                      .free_page_ids = unused_page_ids});
//
// Owned by the caller. Thread-safe. The destructor ends the session, which
// releases its locks and frees its reserved pages.
//
// The session keeps itself alive. When the connection breaks, the session is
// resumed, also with the next pandod where sessions outlive pandod; when it
// cannot be resumed (it was lost with pandod, or the break lasted too long), a
// new one is opened and on_session_lost is called. Calls with locks or
// pages of a lost session fail with the reason SESSION_LOST. While pandod is
// away every call fails with UNAVAILABLE.
//
// A call that fails has changed nothing, with two exceptions: UNAVAILABLE and
// DEADLINE_EXCEEDED of a call that changes something. (A call whose connection
// breaks is repeated for most of a second, and the server acts on it only once;
// UNAVAILABLE means that this was not enough.) The client then cannot know
// whether the server acted. It gives back in the background what the call may
// have locked or reserved. What the call may have released or freed must not be
// used again.
class Client {
 public:
  static absl::StatusOr<std::unique_ptr<Client>> Connect(
      ConnectOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // The id of the present session; zero while there is none. It is a secret:
  // every client that knows it may act for the session.
  uint64_t session_id() const;
  // Names what sessions hold, and stays when sessions outlive pandod; zero
  // while there is no session. It may differ from the epoch of stats, gauges
  // and events, which names the run of pandod.
  uint64_t epoch() const;

  // How MatchPrefix, MatchPrefixes, Insert, TakeLock, Unlock, AllocatePages,
  // FreePages, GetStats and most calls for blocks travel at present. With a
  // lane, a call for which it has no room still goes over gRPC.
  Transport transport() const;
  // Returns OK while there is a lane, else why there is none.
  absl::Status why_no_lane() const;

  // Returns how many pages are in each state, all at one moment. With a lane
  // this reads shared memory and makes no call.
  absl::StatusOr<Gauges> ReadGauges();

  // Makes an empty batch: see Batch.
  Batch NewBatch() { return Batch(this); }

  // The calls that concern blocks.
  BlockClient blocks() const { return BlockClient(connection_.get()); }

  // Returns how many pages no session held when the last MatchPrefix, Insert or
  // AllocatePages was answered; zeros before the first answer.
  PageRoom room() const;

  // Admits a request: finds the longest cached prefix of the prompt and, if the
  // options say so, locks it and reserves pages for the rest. It does all of
  // this or nothing. Fails with POOL_EXHAUSTED or QUOTA_EXCEEDED if there are
  // too few pages.
  //
  // With MatchOptions::after the caller still passes the whole prompt, but the
  // tokens that the handle covers are not sent. A handle that is gone is no
  // error: the call is made again without it. The block table of the request is
  // then: the first Match::first_page pages that the caller knows already, then
  // Match::page_ids, then Match::reserved.
  absl::StatusOr<Match> MatchPrefix(std::span<const Token> tokens,
                                    const MatchOptions& options = {});

  // Scores the prompts of a waiting queue: how many tokens of each are cached,
  // in order. Changes nothing, not even recency. At most 4,096 queries; the
  // server's limit on tokens holds for all of them together.
  absl::StatusOr<std::vector<PrefixScore>> MatchPrefixes(
      std::span<const PrefixQuery> queries, const ScoreOptions& options = {});

  // Publishes pages under a prefix: page_ids[i] holds the KV of the i-th whole
  // page of tokens, and all writes to it are complete on the device. From then
  // on the pages are immutable. With LockAction::kUnlock this is the finish of
  // a request. If the server does not hold InsertOptions::lock any more, the
  // Lock object is emptied. In a bigram namespace n tokens are n - 1 units, and
  // a whole page is page_tokens units.
  absl::StatusOr<InsertResult> Insert(std::span<const Token> tokens,
                                      std::span<const PageId> page_ids,
                                      const InsertOptions& options);

  // Locks the longest cached prefix.
  absl::StatusOr<Lock> TakeLock(std::span<const Token> tokens,
                                const LockOptions& options = {});

  // Releases several locks of one session in one call, all or nothing. For a
  // single lock there is Lock::Release.
  absl::Status Unlock(std::span<Lock> locks);

  // Frees up to `pages` evictable pages; returns how many it freed.
  absl::StatusOr<uint32_t> Evict(uint32_t pages);

  // Reserves pages, evicting as needed. All or nothing; with `at_least`, as
  // many as there is room for, but no fewer than `at_least`. They count for the
  // quota of the namespace.
  absl::StatusOr<ReservedPages> AllocatePages(
      uint32_t pages, const Namespace& ns = {},
      std::optional<uint32_t> at_least = {});

  // Gives reserved pages back; all or nothing.
  absl::Status FreePages(const ReservedPages& pages);

  // Declares that nothing in this process, and no kernel on the device, writes
  // any more to the pages that a lost session had reserved; pandod then frees
  // them at once. Without this call pandod does not free them until the process
  // has unmapped the pool of that session, or has ended.
  absl::Status EndSession(uint64_t session_id);

  absl::StatusOr<PoolDescription> DescribePool();

  // Maps the pool into this process. Fails with LAYOUT_MISMATCH if the pool is
  // not what the worker expects. An open pool takes its layout from the first
  // worker; pandod then begins anew with it, and this client gets a new
  // session.
  absl::StatusOr<MappedPool> AttachPool(const AttachOptions& options = {});

  // Declares that this process writes pages that another process of its engine
  // has reserved: `session_id` is the session_id() of that process's client.
  // When that session is lost, pandod does not free its pages before this
  // client, or its process, is gone as well. If pandod cannot see that, it
  // frees them after a time limit.
  absl::Status LinkSession(uint64_t session_id);

  absl::StatusOr<Stats> GetStats();

  // Evicts everything that is not locked.
  absl::StatusOr<FlushResult> Flush();
  // Evicts everything that is not locked in one namespace.
  absl::StatusOr<FlushResult> Flush(const Namespace& ns);

  // Changes the eviction policy of the running cache. The change itself evicts
  // nothing. Returns the previous policy.
  absl::StatusOr<std::string> SetEvictionPolicy(const std::string& policy);

  // Begins to watch what enters and leaves the cache. A snapshot comes first:
  // AllBlocksCleared, BlocksStored for everything that is cached, SnapshotEnd.
  std::unique_ptr<EventWatch> WatchEvents(const WatchOptions& options = {});

  // Verifies the invariants of the index. Returns a sentence for each invariant
  // that does not hold.
  absl::StatusOr<std::vector<std::string>> CheckInvariants();

 private:
  friend class Batch;

  explicit Client(std::shared_ptr<Connection> connection);

  // These do what the public methods of the same names do. `exchange` is the
  // first exchange of this call in a batch, or null outside a batch.
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

  // Returns when the pool has a layout, this one or that of another worker.
  absl::Status SayLayout(const AttachOptions& options);

  // The locks refer to it weakly.
  const std::shared_ptr<Connection> connection_;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENT_H_
