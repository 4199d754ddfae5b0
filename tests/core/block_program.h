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
// on a BlockCache and on the naive model. After each step all that is known of
// each block is compared, and the invariants hold. Now and then the cache is
// made anew from its ledger, as by the process after a killed one.
class BlockProgram {
 public:
  // `kinds` of them are used: with one, no extent moves.
  BlockProgram(program::Choices choices, uint32_t kinds);

  // Does the next operation. Returns what is wrong; empty: nothing.
  std::string Step();
  // The last operation.
  const std::string& last() const { return last_; }

 private:
  static constexpr uint32_t kSessions = 3;
  struct Session {
    SessionId id;
    uint64_t writer = 0;  // 0: none has mapped the memory
    SessionNumber number;
    std::vector<uint32_t> generations;  // by kind; that it has open
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
  // Any, or the one that took what has this name already.
  Request AnyRequest(uint32_t slot, const BlockModel::HoldName& name);
  // Whether `request` is refused: another one took what has this name.
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
  // A cache on the ledger.
  void MakeCache();
  void EndUnusedKinds();
  // No session has the kind open and it has no blocks, so that it may be gone.
  bool IsForgotten(uint32_t kind, uint32_t generation) const;
  std::string Compare();

  const program::Choices choices_;
  const uint32_t kinds_;
  // Aligned as memory that is mapped.
  std::vector<uint64_t> ledger_;
  std::unique_ptr<PrefixCache> cache_;
  std::unique_ptr<BlockCache> blocks_;
  BlockModel model_;
  std::vector<Session> sessions_;
  // By kind, then by generation - 1.
  std::vector<std::vector<BlockKind>> opened_;
  std::vector<std::vector<bool>> has_ended_;
  // Lost sessions with something in quarantine, under the number that the
  // model knows them by.
  struct Lost {
    Session session;
    uint32_t as;
  };
  std::vector<Lost> lost_;
  std::map<BlockModel::HoldName, Request> requests_;  // the last by its name
  uint64_t last_id_ = 0;
  uint32_t last_lost_ = 100;
  std::string last_;
};

}  // namespace pando

#endif  // PANDO_TESTS_CORE_BLOCK_PROGRAM_H_
