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
#include "pando/errors.h"
#include "pando/lock.h"
#include "pando/mapped_pool.h"
#include "pando/pool.h"
#include "pando/stats.h"
#include "pando/types.h"

namespace pando {
inline namespace client {

struct ConnectOptions {
  // "unix:/path", "/path" or "host:port".
  std::string address = {};
  // Shown to operators, for example "sglang rank 0". At most 128 bytes.
  std::string name = {};
  // Deadline of each call. Connect waits as long for a server to come up.
  absl::Duration timeout = absl::Seconds(5);
  // Called, on a thread of the client, when a session is lost: every lock and
  // page id obtained before is void. It may use the client but not destroy it.
  std::function<void()> on_session_lost = nullptr;
};

struct MatchOptions {
  Namespace ns = {};
  // Caps the match, in tokens: an engine must compute at least one token of a
  // prompt. Unset: no cap. Zero: no match.
  std::optional<uint32_t> max_tokens = {};
  // Lock what matched, in the same step.
  bool lock = false;
  // Reserve pages, in the same step, so that there is room for this many
  // tokens counted from the start of the prompt. Refused without lock. Zero:
  // reserve nothing.
  uint32_t reserve_tokens = 0;
  // Whether the match makes the prefix recently used.
  bool touch = true;
};

struct Match {
  // Tokens of the cached prefix, whole pages.
  uint32_t matched_tokens = 0;
  // The pages of the cached prefix, in prompt order.
  std::vector<PageId> page_ids;
  // Held when MatchOptions::lock was set, even when nothing matched: it is
  // then the anchor of an Insert.
  Lock lock;
  // What MatchOptions::reserve_tokens asked for.
  ReservedPages reserved;
};

// What an anchored Insert does with its lock.
enum class LockAction {
  kKeep,
  // The lock moves to the end of what was inserted: one chunk of a prefill.
  kRelock,
  // The lock is released: the request is finished.
  kUnlock,
};

struct InsertOptions {
  // The anchor: tokens begin at its boundary, in its namespace.
  Lock* lock = nullptr;
  LockAction lock_action = LockAction::kKeep;
  // Without a lock: the session that reserved the pages, and the namespace.
  uint64_t session_id = 0;
  Namespace ns = {};
  // Pages whose tokens were cached already are freed, unless this is set: then
  // they stay reserved.
  bool keep_duplicates = false;
  // Reserved pages to free in the same step: what a finished request has left.
  std::span<const PageId> free_page_ids = {};
  // This many tokens of the admitted prompt, from the lock's boundary on, come
  // before `tokens`: the server holds them since MatchPrefix reserved pages for
  // them, so a prompt travels once. Needs lock.
  uint32_t prompt_tokens = 0;
};

struct InsertResult {
  // Tokens of the call that were cached already, whole pages.
  uint32_t existing_tokens = 0;
  // The cache's pages for those tokens: use them instead of your own.
  std::vector<PageId> canonical_page_ids;
  uint32_t freed_duplicates = 0;
};

// What the worker computes with. The pool is not mapped when it differs; what
// is unset is taken as the server has it.
struct AttachOptions {
  std::optional<KvLayout> expected_layout = {};
  std::optional<std::string> model = {};
};

struct FlushResult {
  uint32_t evicted_pages = 0;
  uint32_t protected_pages = 0;
};

// A worker's attachment to pandod: one connection and one session.
//
// Owned by the caller. The session keeps itself alive: when the connection
// breaks it is resumed, and when it cannot be (pandod restarted, or was away
// for too long) a new one is opened. Calls that carry locks or pages of a lost
// session fail with reason SESSION_LOST; while pandod is away every call fails
// at once with UNAVAILABLE. A failed call changed nothing, except that after
// DEADLINE_EXCEEDED and UNAVAILABLE one cannot know. The destructor ends the
// session, which releases what it holds. Thread-safe.
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

  // Finds the longest cached prefix; on request locks it and reserves pages
  // for the rest, all or nothing. The admission of a request.
  absl::StatusOr<Match> MatchPrefix(std::span<const Token> tokens,
                                    const MatchOptions& options = {});

  // Publishes pages under a prefix: page_ids[i] holds the KV of the i-th whole
  // page of tokens, complete on the device. With LockAction::kUnlock the
  // finish of a request. A lock that the server does not know is dropped.
  absl::StatusOr<InsertResult> Insert(std::span<const Token> tokens,
                                      std::span<const PageId> page_ids,
                                      const InsertOptions& options);

  // Locks the longest cached prefix.
  absl::StatusOr<Lock> TakeLock(std::span<const Token> tokens,
                                const Namespace& ns = {});

  // Releases many locks in one call, all or nothing; they must be of one
  // session. For a single one there is Lock::Release.
  absl::Status Unlock(std::span<Lock> locks);

  // Frees up to `pages` evictable pages; returns how many it freed.
  absl::StatusOr<uint32_t> Evict(uint32_t pages);

  // Reserves pages, evicting as needed; all or nothing.
  absl::StatusOr<ReservedPages> AllocatePages(uint32_t pages);

  // Gives reserved pages back; all or nothing.
  absl::Status FreePages(const ReservedPages& pages);

  absl::StatusOr<PoolDescription> DescribePool();

  // Maps the pool into this process; LAYOUT_MISMATCH when it is not what the
  // worker expects.
  absl::StatusOr<MappedPool> AttachPool(const AttachOptions& options = {});

  absl::StatusOr<Stats> GetStats();

  // Evicts everything that is not locked.
  absl::StatusOr<FlushResult> Flush();

  // The invariants of the index that do not hold; empty when all is well.
  absl::StatusOr<std::vector<std::string>> CheckInvariants();

 private:
  explicit Client(std::shared_ptr<Connection> connection);

  // Shared with the locks, which only hold it weakly.
  const std::shared_ptr<Connection> connection_;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENT_H_
