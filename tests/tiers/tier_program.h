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

// A number below `limit`.
using Choices = std::function<uint32_t(uint32_t limit)>;

// Does the same to a tier in memory and one on real files as to the reference
// of each, and compares: which blocks are found in which tier, which are in the
// files, the bytes of those that are loaded, and from where they come. Prompts
// are paths of a small tree, so that they share beginnings.
class TierProgram {
 public:
  // `folder` is for this program alone; it is removed at the end.
  TierProgram(Choices below, std::string folder);
  ~TierProgram();
  TierProgram(const TierProgram&) = delete;
  TierProgram& operator=(const TierProgram&) = delete;

  // Does something at random. Returns how the two differ then.
  std::vector<std::string> Step();
  // The steps that were taken, one a line.
  const std::string& listing() const { return listing_; }

 private:
  // A tier, and what must be in it.
  struct Tier {
    explicit Tier(size_t count) : slots(count), reference(count) {}

    const size_t slots;
    std::unique_ptr<LocalTier> tier;
    ReferenceTier reference;
    uint64_t damaged_pages = 0;  // that were found
    // The hashes that a follower must know, and those that it was told.
    std::set<PageHash> known;
    std::set<PageHash> told;
  };

  void Open();
  std::vector<Block> AnyPrompt();
  std::optional<uint64_t> AnyNamespaceOrAll();
  // Sees to it that the pages have the bytes that the blocks must have.
  void Fill(std::span<const Block> blocks);
  std::vector<std::byte> BytesOf(uint64_t number) const;
  // How many of `run` can be loaded, from the front.
  size_t CountIntact(std::span<const Block> run) const;
  void TakeFoundDamage(Tier& tier, std::span<const Block> run);
  void Differ(const std::string& how) { differences_.push_back(how); }
  void Say(const std::string& line) { listing_ += line + '\n'; }

  // Tells who follows the tier of a prompt.
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
  const HostStore* memory_ = nullptr;  // the host tier's
  std::optional<TierStack> stack_;
  std::string listing_;
  std::vector<std::string> differences_;
};

}  // namespace pando::tier_program

#endif  // PANDO_TESTS_TIERS_TIER_PROGRAM_H_
