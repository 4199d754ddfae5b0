#ifndef PANDO_TESTS_CORE_BLOCK_PROGRAM_H_
#define PANDO_TESTS_CORE_BLOCK_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/block_cache.h"
#include "core/prefix_cache.h"
#include "tests/core/block_model.h"
#include "tests/core/random_operations.h"

namespace pando {

// Random calls of three sessions over kinds of three sizes in a small memory,
// on a BlockCache and on the naive model. After each step the test compares all
// that is known of each block and checks the invariants. Now and then the
// program builds a new cache from the ledger, as a process does whose
// predecessor was killed.
class BlockProgram {
 public:
  // Uses the first `kinds` of the three kinds. With one kind, no extent moves;
  // with more, half of the programs have quotas.
  BlockProgram(program::Choices choices, uint32_t kinds);

  // Does the next operation. Returns a description of the first error, or an
  // empty string.
  std::string Step();
  // The last operation, in words.
  const std::string& last() const { return last_; }

 private:
  static constexpr uint32_t kSessions = 3;
  struct Session {
    SessionId id;
    uint64_t writer = 0;  // 0 if no writer has mapped the memory
    SessionNumber number;
    std::vector<uint32_t> generations;  // of the kinds that it has open
  };

  // The call that took a lock or a reservation.
  struct Request {
    std::vector<BlockModel::Keys> keys;
    bool all = false;

    friend bool operator==(const Request&, const Request&) = default;
  };

  uint32_t Below(uint32_t limit) { return choices_(limit); }
  std::string OpenSession(uint32_t slot);
  std::string OpenKinds(uint32_t slot);
  BlockKeys ToKeys(const BlockModel::Keys& keys, uint32_t slot,
                   std::string& bytes) const;
  std::vector<BlockModel::Keys> AnyKeys(uint32_t slot);
  // Returns a random request, or the request that took the lock or reservation
  // which already has this name.
  Request AnyRequest(uint32_t slot, const BlockModel::HoldName& name);
  // Whether the cache must refuse `request` because a different request took
  // the lock or reservation of this name.
  bool IsTaken(const BlockModel::HoldName& name, const Request& request) const;
  std::vector<uint32_t> AnyIndices(const BlockModel::HoldName& name);
  std::string Find(uint32_t slot, bool locks);
  std::string Reserve(uint32_t slot);
  std::string Complete(uint32_t slot, bool publishes);
  std::string Release(uint32_t slot);
  std::string ResetKind(uint32_t slot);
  std::string EndSession(uint32_t slot);
  std::string EndQuarantine();
  std::string Restart();
  // Makes a new cache on the ledger.
  void MakeCache();
  void EndUnusedKinds();
  // Whether the cache may have forgotten the kind: no session has the kind
  // open, and it has no blocks.
  bool IsForgotten(uint32_t kind, uint32_t generation) const;
  std::string Compare();

  const program::Choices choices_;
  const uint32_t kinds_;
  const bool has_quotas_;
  // The ledger's bytes, aligned as mapped memory is.
  std::vector<uint64_t> ledger_;
  std::unique_ptr<PrefixCache> cache_;
  std::unique_ptr<BlockCache> blocks_;
  BlockModel model_;
  std::vector<Session> sessions_;
  // Indexed by kind, then by generation - 1.
  std::vector<std::vector<BlockKind>> opened_;
  std::vector<std::vector<bool>> has_ended_;
  // A lost session with locks or blocks in quarantine, and the session number
  // `as` that the model uses for that session.
  struct Lost {
    Session session;
    uint32_t as;
  };
  std::vector<Lost> lost_;
  std::map<BlockModel::HoldName, Request> requests_;  // the last one of a name
  uint64_t last_id_ = 0;
  uint32_t last_lost_ = 100;
  std::string last_;
};

}  // namespace pando

#endif  // PANDO_TESTS_CORE_BLOCK_PROGRAM_H_
