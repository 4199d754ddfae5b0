#include "tests/service/tiers/tier_program.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "gpu/page_checksum_plan.h"
#include "service/tiers/disk_store.h"
#include "tests/service/tiers/hashes.h"
#include "tests/service/tiers/tier_files.h"

namespace pando::tier_program {
namespace {

constexpr uint32_t kMaxPrompt = 5;
constexpr uint32_t kNamespaces = 2;
constexpr uint32_t kMaxSlots = 12;
// Those that are filled and stored, and those that are loaded; 0 is padding.
constexpr uint32_t kFirstStored = 1;
constexpr uint32_t kFirstLoaded = kFirstStored + kMaxPrompt;
constexpr uint32_t kPoolPages = kFirstLoaded + kMaxPrompt;

std::unique_ptr<HostKvPool> MakePool() {
  auto pool = HostKvPool::Create({.layers = 2,
                                  .kv_planes = 2,
                                  .heads = 1,
                                  .head_size = 16,
                                  .dtype = DType::kFloat16,
                                  .page_tokens = 4,
                                  .order = LayoutOrder::kLayerFirst},
                                 kPoolPages, 1);
  CHECK(pool.ok());
  return *std::move(pool);
}

std::vector<PageId> PagesFrom(uint32_t first, size_t count) {
  std::vector<PageId> pages;
  for (uint32_t i = 0; i < count; ++i) pages.push_back(PageId(first + i));
  return pages;
}

std::vector<PageHash> HashesOf(std::span<const Block> blocks) {
  std::vector<PageHash> hashes;
  for (const Block& block : blocks) hashes.push_back(HashOf(block.number));
  return hashes;
}

// The block that follows `parent` in a prompt, or begins one.
Block Child(const Block& parent, uint32_t branch) {
  return {.number = parent.number * 2 + branch,
          .ns_digest = parent.ns_digest,
          .ordinal = parent.ordinal + 1};
}

// In each namespace, the parent of the first blocks.
Block Root(uint32_t ns) {
  return {.number = (uint64_t{ns} << 32) + 1, .ns_digest = ns, .ordinal = 0};
}

std::string Text(std::span<const Block> prompt) {
  const Block& last = prompt.back();
  return absl::StrCat("prompt of ", prompt.size(), " to block ",
                      last.number & 0xffffffff, " of namespace ",
                      last.ns_digest);
}

std::string Text(std::optional<uint64_t> ns_digest) {
  return ns_digest.has_value() ? absl::StrCat(*ns_digest) : "all";
}

}  // namespace

TierProgram::TierProgram(Choices below, std::string folder)
    : below_(std::move(below)),
      slots_(1 + below_(kMaxSlots)),
      folder_(std::move(folder)),
      pool_(MakePool()),
      pages_(*MappedPages::Map(*pool_)),
      reference_(slots_) {
  std::filesystem::remove_all(folder_);
  Open();
  Say(absl::StrCat(slots_, " slots"));
}

TierProgram::~TierProgram() {
  tier_.reset();
  std::filesystem::remove_all(folder_);
}

std::vector<std::string> TierProgram::Step() {
  // Stores and loads are what most do.
  switch (below_(12)) {
    case 0:
      Touch();
      break;
    case 1:
      Forget();
      break;
    case 2:
      EraseForgotten();
      break;
    case 3:
      Restart();
      break;
    case 4:
      Damage();
      break;
    case 5:
    case 6:
    case 7:
      Load();
      break;
    default:
      Store();
  }
  Compare();
  return std::exchange(differences_, {});
}

void TierProgram::Open() {
  tier_.reset();
  auto store = DiskStore::Open(
      {.folder = folder_,
       .max_bytes = kHeaderBytes + slots_ * (kSlotBytes + kRecordBytes),
       .block_bytes = pages_->block_bytes(),
       .digest = pages_->Digest("m")});
  CHECK(store.ok());
  tier_ =
      std::make_unique<LocalTier>(*MappedPages::Map(*pool_), *std::move(store));
  damaged_pages_ = 0;
}

std::vector<Block> TierProgram::AnyPrompt() {
  std::vector<Block> prompt;
  Block block = Root(below_(kNamespaces));
  for (uint32_t left = 1 + below_(kMaxPrompt); left > 0; --left) {
    block = Child(block, below_(2));
    prompt.push_back(block);
  }
  return prompt;
}

std::optional<uint64_t> TierProgram::AnyNamespaceOrAll() {
  const uint32_t ns = below_(kNamespaces + 1);
  if (ns == kNamespaces) return std::nullopt;
  return ns;
}

std::vector<std::byte> TierProgram::BytesOf(const Block& block) const {
  std::vector<std::byte> bytes(pages_->block_bytes());
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(MixWord(block.number, i));
  }
  return bytes;
}

void TierProgram::Fill(std::span<const Block> blocks) {
  const std::vector<PageId> pages = PagesFrom(kFirstStored, blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    CHECK(pages_->CopyIn(BytesOf(blocks[i]).data(), pages[i]).ok());
  }
}

void TierProgram::Store() {
  const std::vector<Block> prompt = AnyPrompt();
  const size_t begin = below_(static_cast<uint32_t>(prompt.size()));
  const auto blocks = std::span<const Block>(prompt).subspan(begin);
  const bool is_confirmed = below_(5) > 0;
  const bool is_flushed = below_(5) == 0;
  const std::optional<uint64_t> ns =
      is_flushed ? AnyNamespaceOrAll() : std::nullopt;
  Say(absl::StrCat("store ", Text(prompt), " from ", begin,
                   is_confirmed ? "" : ", not confirmed",
                   is_flushed ? ", meanwhile forget " + Text(ns) : ""));
  Fill(blocks);
  tier_->Store(prompt[0].ns_digest, HashesOf(prompt), begin,
               PagesFrom(kFirstStored, blocks.size()), [&] {
                 if (is_flushed) tier_->Forget(ns);
                 return is_confirmed;
               });
  reference_.Store(prompt, begin, is_confirmed, [&] {
    if (is_flushed) reference_.Forget(ns);
  });
}

void TierProgram::Load() {
  const std::vector<Block> prompt = AnyPrompt();
  const auto run = std::span<const Block>(prompt).subspan(
      below_(static_cast<uint32_t>(prompt.size())));
  Say(absl::StrCat("load the last ", run.size(), " of ", Text(prompt)));
  const std::vector<PageId> pages = PagesFrom(kFirstLoaded, run.size());
  const size_t before = reference_.stored();
  const size_t loaded = tier_->Load(HashesOf(run), pages);
  const size_t expected = reference_.Load(run);
  damaged_pages_ += before - reference_.stored();
  if (loaded != expected) {
    differences_.push_back(
        absl::StrCat("loaded ", loaded, " instead of ", expected));
  }
  for (size_t i = 0; i < std::min(loaded, expected); ++i) {
    std::vector<std::byte> bytes(pages_->block_bytes());
    CHECK(pages_->CopyOut(pages[i], bytes.data()).ok());
    if (bytes == BytesOf(run[i])) continue;
    differences_.push_back(absl::StrCat("wrong bytes in page ", i));
  }
}

void TierProgram::Touch() {
  const std::vector<Block> prompt = AnyPrompt();
  Say(absl::StrCat("touch ", Text(prompt)));
  tier_->Touch(HashesOf(prompt));
  reference_.Touch(prompt);
}

void TierProgram::Forget() {
  const std::optional<uint64_t> ns = AnyNamespaceOrAll();
  Say("forget " + Text(ns));
  tier_->Forget(ns);
  reference_.Forget(ns);
}

void TierProgram::EraseForgotten() {
  Say("erase what is forgotten");
  tier_->EraseForgotten();
  reference_.EraseForgotten();
}

void TierProgram::Restart() {
  Say("restart");
  Open();
  std::vector<uint64_t> by_slot;
  for (const std::optional<uint64_t>& number : RecordsIn(folder_, slots_)) {
    if (number.has_value()) by_slot.push_back(*number);
  }
  reference_.Restart(by_slot);
}

void TierProgram::Damage() {
  const uint32_t slot = below_(static_cast<uint32_t>(slots_));
  const std::optional<uint64_t> number = RecordsIn(folder_, slots_)[slot];
  if (!number.has_value() || reference_.IsDamaged(*number)) return;
  const uint64_t at =
      slot * kSlotBytes + below_(static_cast<uint32_t>(pages_->block_bytes()));
  Say(absl::StrCat("flip a bit of slot ", slot));
  FlipBit(folder_, at);
  reference_.Damage(*number);
}

void TierProgram::Compare() {
  std::set<uint64_t> on_disk;
  for (const std::optional<uint64_t>& number : RecordsIn(folder_, slots_)) {
    if (!number.has_value() || on_disk.insert(*number).second) continue;
    differences_.push_back(absl::StrCat("two copies of ", *number));
  }
  if (on_disk != reference_.OnDisk()) {
    differences_.push_back("other blocks on disk than there must be");
  }
  const TierFigures figures = tier_->figures();
  if (figures.held_pages != reference_.stored() ||
      figures.damaged_pages != damaged_pages_) {
    differences_.push_back(absl::StrCat(
        "held ", figures.held_pages, " instead of ", reference_.stored(),
        ", damaged ", figures.damaged_pages, " instead of ", damaged_pages_));
  }
  for (uint32_t ns = 0; ns < kNamespaces; ++ns) CompareBelow(Root(ns));
}

void TierProgram::CompareBelow(const Block& parent) {
  if (parent.ordinal == kMaxPrompt) return;
  for (const uint32_t branch : {0, 1}) {
    const Block block = Child(parent, branch);
    const PageHash hash = HashOf(block.number);
    const bool is_found = tier_->CountStored({&hash, 1}) == 1;
    if (is_found != reference_.IsStored(block.number)) {
      differences_.push_back(absl::StrCat(
          "block ", block.number, is_found ? " is" : " is not", " found"));
    }
    CompareBelow(block);
  }
}

}  // namespace pando::tier_program
