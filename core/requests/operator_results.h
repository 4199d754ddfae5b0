#ifndef PANDO_CORE_REQUESTS_OPERATOR_RESULTS_H_
#define PANDO_CORE_REQUESTS_OPERATOR_RESULTS_H_

// The answers of PrefixCache to operators: plain structs. A field means what
// the field of the same name means in proto/pando/v1/admin.proto.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/ids.h"
#include "core/requests/eviction_reason.h"

namespace pando {

struct NamespaceInfo {
  NamespaceNumber number;
  std::optional<std::string> extra_key;
  bool has_cache_salt = false;
  bool bigram = false;
  uint32_t evictable_pages = 0;
  uint32_t protected_pages = 0;
  uint32_t nodes = 0;
};

struct NamespaceList {
  std::vector<NamespaceInfo> namespaces;
  uint32_t total = 0;
};

struct SessionInfo {
  SessionNumber number;
  std::string client_name;
  uint32_t locks = 0;
  uint32_t reserved_pages = 0;
  absl::Duration age;
  bool is_connected = false;
  bool is_attached = false;
  bool is_internal = false;
  uint32_t locked_blocks = 0;  // each as often as it is locked
  uint32_t reserved_blocks = 0;
  uint64_t steps = 0;  // how many its calls have taken
};

struct SessionList {
  std::vector<SessionInfo> sessions;
  uint32_t total = 0;
};

// A lost session with pages in quarantine.
struct QuarantineInfo {
  SessionNumber number;
  std::string client_name;
  uint32_t pages = 0;
  absl::Duration age;             // since the session was lost
  std::vector<WriterId> writers;  // those that are known to live
  bool has_unwatched = false;
  uint32_t locked_blocks = 0;  // each as often as it is locked
  uint32_t reserved_blocks = 0;
};

struct QuarantineList {
  std::vector<QuarantineInfo> sessions;
  uint32_t total = 0;
};

struct LockInfo {
  SessionNumber session;
  std::string client_name;
  uint32_t locked_tokens = 0;
  absl::Duration age;
  NamespaceNumber ns;
  uint64_t node = 0;  // TreeNodeInfo::node; not in the protocol
};

struct LockList {
  std::vector<LockInfo> locks;
  uint32_t total = 0;
};

// Why a match ended where it did.
enum class MatchEnd {
  kComplete,
  kPageFloor,
  kDiverged,
  kEvicted,
  kNeverCached,
};

struct MatchExplanation {
  struct Eviction {
    EvictionReason reason;
    absl::Duration age;
  };

  uint32_t matched_tokens = 0;
  MatchEnd end = MatchEnd::kComplete;
  uint32_t diverged_at = 0;          // with kDiverged
  std::optional<Eviction> eviction;  // with kEvicted
  bool is_pending = false;
  std::vector<NamespaceNumber> longer_in_namespaces;
  std::vector<LockInfo> locks;
};

struct TreeNodeInfo {
  uint64_t node = 0;
  uint64_t parent = 0;
  NamespaceNumber ns;
  uint32_t depth = 0;
  uint32_t begin_token = 0;
  uint32_t tokens = 0;
  uint32_t pages = 0;
  uint32_t locks = 0;
  uint32_t hits = 0;
  int32_t priority = 0;
  uint64_t age_accesses = 0;
};

struct TreeDump {
  std::vector<TreeNodeInfo> nodes;
  uint32_t omitted = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_REQUESTS_OPERATOR_RESULTS_H_
