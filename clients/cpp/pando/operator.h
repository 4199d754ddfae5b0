// The C++ client for operators: it opens no session.
#ifndef PANDO_OPERATOR_H_
#define PANDO_OPERATOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "pando/errors.h"
#include "pando/events.h"
#include "pando/operator_answers.h"
#include "pando/requests.h"
#include "pando/stats.h"
#include "pando/tls.h"
#include "pando/types.h"

namespace pando {
inline namespace client {

class Endpoint;
class OperatorCalls;

// See ConnectOptions.
struct OperatorOptions {
  std::string address = {};
  absl::Duration timeout = absl::Seconds(5);
  std::optional<TlsFiles> tls = {};
  std::string token = {};
};

// Makes the calls that concern the cache as a whole, for dashboards, routers
// and operators. It opens no session. If pandod requires credentials, calls
// that only read or watch need the role `reader`, and calls that change
// something need `admin`.
//
// Owned by the caller. Thread-safe.
class Operator {
 public:
  // Fails when a certificate cannot be read. The first call connects.
  static absl::StatusOr<std::unique_ptr<Operator>> Make(
      OperatorOptions options);
  ~Operator();
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  absl::StatusOr<Stats> GetStats();

  // Evicts everything that is not locked: in all namespaces, in one, or in the
  // one with this number in ListNamespaces.
  absl::StatusOr<FlushResult> Flush();
  absl::StatusOr<FlushResult> Flush(const Namespace& ns);
  absl::StatusOr<FlushResult> FlushNumber(uint64_t namespace_number);

  // Changes the eviction policy of the running cache. The change itself evicts
  // nothing. Returns the previous policy.
  absl::StatusOr<std::string> SetEvictionPolicy(const std::string& policy);

  // The namespaces with something cached or locked, the largest first.
  absl::StatusOr<Listing<NamespaceInfo>> ListNamespaces(uint32_t limit = 1000);
  // The sessions that are open, the oldest first.
  absl::StatusOr<Listing<SessionInfo>> ListSessions(uint32_t limit = 1000);
  // The locks that are held, the oldest first; of one session, if its number is
  // not zero.
  absl::StatusOr<Listing<LockInfo>> ListLocks(uint32_t limit = 1000,
                                              uint32_t session_number = 0);
  // Takes all locks away from one session; returns how many. For a worker that
  // hangs: its session lives on and keeps its reserved pages.
  absl::StatusOr<uint32_t> ReleaseLocks(uint32_t session_number);

  // The lost sessions with pages in quarantine, the oldest first.
  absl::StatusOr<Listing<QuarantineInfo>> ListQuarantine(uint32_t limit = 1000);
  // Frees the pages that a lost session has in quarantine; returns how many.
  // Dangerous while a process of that session lives: if it still writes to
  // these pages, it overwrites the data of their next owners.
  absl::StatusOr<uint32_t> FreeQuarantine(uint32_t session_number);

  // Explains why a prompt matches as far as it does, and no further.
  absl::StatusOr<Explanation> ExplainMatch(std::span<const Token> tokens,
                                           const Namespace& ns = {});

  // The kinds of blocks, those with the most memory first.
  absl::StatusOr<Listing<KindInfo>> ListKinds(uint32_t limit = 1000);
  // Explains why the block of a key is found or not.
  absl::StatusOr<BlockExplanation> ExplainBlock(uint32_t kind_number,
                                                std::string_view key);

  // Lists up to `limit` nodes of the tree, parents first; only those of one
  // namespace, if its number is not zero.
  absl::StatusOr<TreeDump> DumpTree(uint32_t limit = 10'000,
                                    uint64_t namespace_number = 0);

  // Begins to watch what enters and leaves the cache. A snapshot comes first:
  // AllBlocksCleared, BlocksStored for everything that is cached, SnapshotEnd.
  std::unique_ptr<EventWatch> WatchEvents(const WatchOptions& options = {});

  // Makes the server admit nothing new, which cannot be undone. With `exit` the
  // server also ends once nothing is locked or reserved.
  absl::Status Drain(bool exit = false);
  // Makes pandod end at once, so that its keeper starts the program that is now
  // at its path. Blocks stay, and the cache of a host pool without a mover
  // socket; where there are no blocks, also the sessions of that pool. All else
  // is lost. NO_KEEPER if nothing would start pandod again.
  absl::Status Restart();

  // Verifies the invariants of the index. Returns a sentence for each invariant
  // that does not hold.
  absl::StatusOr<std::vector<std::string>> CheckInvariants();

 private:
  // Connection makes a client's calls about the cache as a whole with an
  // Operator.
  friend class Connection;

  explicit Operator(std::shared_ptr<const Endpoint> endpoint);

  const std::unique_ptr<const OperatorCalls> calls_;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_OPERATOR_H_
