#ifndef PANDO_TESTS_SERVICE_TIERS_TIER_PROGRAM_H_
#define PANDO_TESTS_SERVICE_TIERS_TIER_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "gpu/host_kv_pool.h"
#include "service/tiers/local_tier.h"
#include "service/tiers/mapped_pages.h"
#include "tests/service/tiers/reference_tier.h"

namespace pando::tier_program {

// A number below `limit`.
using Choices = std::function<uint32_t(uint32_t limit)>;

// Does the same to a LocalTier on real files and to the reference, and
// compares: which blocks are found, which are in the files, and the bytes of
// those that are loaded. Prompts are paths of a small tree, so that they share
// beginnings.
class TierProgram {
 public:
  // `folder` is for this program alone; it is removed at the end.
  TierProgram(Choices below, std::string folder);
  ~TierProgram();
  TierProgram(const TierProgram&) = delete;
  TierProgram& operator=(const TierProgram&) = delete;

  // Does something at random. Returns how the two differ then.
  std::vector<std::string> Step();
  // What was done, a line for each step.
  const std::string& listing() const { return listing_; }

 private:
  void Open();
  std::vector<Block> AnyPrompt();
  std::optional<uint64_t> AnyNamespaceOrAll();
  // Sees to it that the pages have the bytes that the blocks must have.
  void Fill(std::span<const Block> blocks);
  std::vector<std::byte> BytesOf(const Block& block) const;
  void Say(const std::string& line) { listing_ += line + '\n'; }

  void Store();
  void Load();
  void Touch();
  void Forget();
  void EraseForgotten();
  void Restart();
  void Damage();
  void Compare();
  void CompareBelow(const Block& parent);

  const Choices below_;
  const size_t slots_;
  const std::string folder_;
  const std::unique_ptr<HostKvPool> pool_;
  const std::unique_ptr<MappedPages> pages_;
  std::unique_ptr<LocalTier> tier_;
  ReferenceTier reference_;
  uint64_t damaged_pages_ = 0;
  std::string listing_;
  std::vector<std::string> differences_;
};

}  // namespace pando::tier_program

#endif  // PANDO_TESTS_SERVICE_TIERS_TIER_PROGRAM_H_
