#ifndef PANDO_TESTS_TIERS_TIER_PROGRAM_H_
#define PANDO_TESTS_TIERS_TIER_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "gpu/host_kv_pool.h"
#include "tests/tiers/reference_tier.h"
#include "tiers/copying/mapped_pages.h"
#include "tiers/local/host_store.h"
#include "tiers/local/local_tier.h"
#include "tiers/tier_stack.h"

namespace pando::tier_program {

// Returns a number below `limit`.
using Choices = std::function<uint32_t(uint32_t limit)>;

// Does the same to a tier in memory, to a tier on real files, and to a
// reference of each. Compares which blocks each tier finds, which blocks are in
// the files, which tier blocks are loaded from, and with which bytes. Prompts
// are paths of a small tree, so they share beginnings.
class TierProgram {
 public:
  // `folder` is for this program alone; the destructor removes it.
  TierProgram(Choices below, std::string folder);
  ~TierProgram();
  TierProgram(const TierProgram&) = delete;
  TierProgram& operator=(const TierProgram&) = delete;

  // Takes a random step. Returns the differences between tiers and references
  // after the step.
  std::vector<std::string> Step();
  // The steps that were taken, one on each line.
  const std::string& listing() const { return listing_; }

 private:
  // A tier, and the reference that knows what must be in it.
  struct Tier {
    explicit Tier(size_t count) : slots(count), reference(count) {}

    const size_t slots;
    std::unique_ptr<LocalTier> tier;
    ReferenceTier reference;
    uint64_t damaged_pages = 0;  // those that were found
    // The hashes that a follower of the tier must know, and those that the tier
    // has reported to it.
    std::set<PageHash> known;
    std::set<PageHash> told;
  };

  void Open();
  std::vector<Block> AnyPrompt();
  std::optional<uint64_t> AnyNamespaceOrAll();
  // Writes the bytes that the blocks must have to the pages from which they are
  // stored.
  void Fill(std::span<const Block> blocks);
  std::vector<std::byte> BytesOf(uint64_t number) const;
  // Returns how many blocks can be loaded from the front of `run`.
  size_t CountIntact(std::span<const Block> run) const;
  void TakeFoundDamage(Tier& tier, std::span<const Block> run);
  void Differ(const std::string& how) { differences_.push_back(how); }
  void Say(const std::string& line) { listing_ += line + '\n'; }

  // Makes the tier report the blocks of a prompt, and adds those that are
  // stored to `known`.
  static void Tell(Tier& tier, std::span<const Block> prompt);
  void Store();
  void Load();
  void Touch();
  void Forget();
  void EraseForgotten();
  void Restart();
  void DamageDisk();
  void DamageHost();
  void CompareKept(std::span<const Block> run);
  void CompareLoaded(std::span<const Block> run);
  void CompareFiles();
  void Compare(const std::string& name, Tier& tier);
  void CompareTold(const std::string& name, Tier& tier);
  void CompareBelow(const Block& parent, const std::string& name,
                    const Tier& tier);

  const Choices below_;
  const std::string folder_;
  const std::unique_ptr<HostKvPool> pool_;
  const std::unique_ptr<MappedPages> pages_;
  Tier host_;
  Tier disk_;
  const HostStore* memory_ = nullptr;  // owned by the host tier
  std::optional<TierStack> stack_;
  std::string listing_;
  std::vector<std::string> differences_;
};

}  // namespace pando::tier_program

#endif  // PANDO_TESTS_TIERS_TIER_PROGRAM_H_
