#include "tests/tiers/tier_program.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "gpu/page_checksum_plan.h"
#include "tests/tiers/hashes.h"
#include "tests/tiers/tier_files.h"
#include "tiers/local/disk_store.h"

namespace pando::tier_program {
namespace {

constexpr uint32_t kMaxPrompt = 5;
constexpr uint32_t kNamespaces = 2;
constexpr uint32_t kMaxSlots = 12;
// The first page from which blocks are stored, and the first page to which they
// are loaded. Page 0 is padding.
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

// Returns the block that follows `parent` in a prompt. A block that follows a
// Root begins a prompt.
Block Child(const Block& parent, uint32_t branch) {
  return {.number = parent.number * 2 + branch,
          .ns_digest = parent.ns_digest,
          .ordinal = parent.ordinal + 1};
}

// Returns the parent of all blocks that begin a prompt in a namespace.
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
      folder_(std::move(folder)),
      pool_(MakePool()),
      pages_(*MappedPages::Map(*pool_)),
      host_(1 + below_(kMaxSlots)),
      disk_(1 + below_(kMaxSlots)) {
  std::filesystem::remove_all(folder_);
  Open();
  Say(absl::StrCat(host_.slots, " slots in memory, ", disk_.slots, " on disk"));
}

TierProgram::~TierProgram() {
  disk_.tier.reset();
  std::filesystem::remove_all(folder_);
}

std::vector<std::string> TierProgram::Step() {
  // Most steps are stores and loads.
  switch (below_(16)) {
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
      DamageDisk();
      break;
    case 5:
      DamageHost();
      break;
    case 6:
    case 7:
    case 8:
    case 9:
      Load();
      break;
    default:
      Store();
  }
  CompareFiles();
  Compare("host", host_);
  Compare("disk", disk_);
  return std::exchange(differences_, {});
}

void TierProgram::Open() {
  stack_.reset();
  for (Tier* const tier : {&host_, &disk_}) {
    tier->tier.reset();
    tier->damaged_pages = 0;
    tier->known.clear();
    tier->told.clear();
  }
  auto memory = HostStore::Make(host_.slots * pages_->block_bytes(),
                                pages_->block_bytes());
  auto files = DiskStore::Open(
      {.folder = folder_,
       .max_bytes = kHeaderBytes + disk_.slots * (kSlotBytes + kRecordBytes),
       .block_bytes = pages_->block_bytes(),
       .digest = pages_->Digest("m")});
  CHECK(memory.ok() && files.ok());
  memory_ = memory->get();
  CHECK(memory_->slots() == host_.slots);
  host_.tier = std::make_unique<LocalTier>(*MappedPages::Map(*pool_),
                                           *std::move(memory));
  disk_.tier =
      std::make_unique<LocalTier>(*MappedPages::Map(*pool_), *std::move(files));
  for (Tier* const tier : {&host_, &disk_}) tier->tier->FollowChanges();
  stack_.emplace(host_.tier.get(), disk_.tier.get(), nullptr);
}

void TierProgram::Tell(Tier& tier, std::span<const Block> prompt) {
  const NamespaceKey ns;
  const std::vector<Token> tokens(prompt.size());
  const std::vector<PageHash> hashes = HashesOf(prompt);
  tier.tier->Tell({ns, tokens, hashes, 1});
  for (const Block& block : prompt) {
    if (tier.reference.IsStored(block.number)) {
      tier.known.insert(HashOf(block.number));
    }
  }
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

std::vector<std::byte> TierProgram::BytesOf(uint64_t number) const {
  std::vector<std::byte> bytes(pages_->block_bytes());
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(MixWord(number, i));
  }
  return bytes;
}

void TierProgram::Fill(std::span<const Block> blocks) {
  const std::vector<PageId> pages = PagesFrom(kFirstStored, blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    CHECK(pages_->CopyIn(BytesOf(blocks[i].number).data(), pages[i]).ok());
  }
}

void TierProgram::Store() {
  const bool is_to_host = below_(2) == 0;
  Tier& into = is_to_host ? host_ : disk_;
  const std::vector<Block> prompt = AnyPrompt();
  const size_t begin = below_(static_cast<uint32_t>(prompt.size()));
  const auto blocks = std::span<const Block>(prompt).subspan(begin);
  const bool is_confirmed = below_(5) > 0;
  const bool is_flushed = below_(5) == 0;
  const std::optional<uint64_t> ns =
      is_flushed ? AnyNamespaceOrAll() : std::nullopt;
  Say(absl::StrCat("store ", is_to_host ? "in memory " : "on disk ",
                   Text(prompt), " from ", begin,
                   is_confirmed ? "" : ", not confirmed",
                   is_flushed ? ", meanwhile forget " + Text(ns) : ""));
  Fill(blocks);
  into.tier->Store(prompt[0].ns_digest, HashesOf(prompt), begin,
                   PagesFrom(kFirstStored, blocks.size()), [&] {
                     if (is_flushed) into.tier->Forget(ns);
                     return is_confirmed;
                   });
  into.reference.Store(prompt, begin, is_confirmed, [&] {
    if (is_flushed) into.reference.Forget(ns);
  });
  Tell(into, prompt);
}

void TierProgram::Load() {
  const std::vector<Block> prompt = AnyPrompt();
  const auto run = std::span<const Block>(prompt).subspan(
      below_(static_cast<uint32_t>(prompt.size())));
  Say(absl::StrCat("load the last ", run.size(), " of ", Text(prompt)));
  CompareKept(run);
  CompareLoaded(run);
  TakeFoundDamage(host_, run);
  TakeFoundDamage(disk_, run);
}

void TierProgram::CompareKept(std::span<const Block> run) {
  TierStack::KeptRun expected;
  for (const Block& block : run) {
    const bool is_in_host = host_.reference.IsStored(block.number);
    if (!is_in_host && !disk_.reference.IsStored(block.number)) break;
    ++expected.pages;
    expected.slowest =
        std::max(expected.slowest, is_in_host ? KeptIn::kHost : KeptIn::kDisk);
  }
  const TierStack::KeptRun kept = stack_->CountKept(HashesOf(run));
  if (kept.pages != expected.pages) {
    Differ(
        absl::StrCat("kept are ", kept.pages, " instead of ", expected.pages));
  }
  // The disk may also count blocks that are in memory, so `slowest` is wrong
  // only if it is a faster tier than expected.
  if (kept.slowest < expected.slowest) Differ("kept are elsewhere");
}

void TierProgram::CompareLoaded(std::span<const Block> run) {
  const std::vector<PageId> pages = PagesFrom(kFirstLoaded, run.size());
  const size_t loaded =
      stack_->Load(run.front().ns_digest, HashesOf(run), pages);
  const size_t expected = CountIntact(run);
  if (loaded != expected) {
    Differ(absl::StrCat("loaded ", loaded, " instead of ", expected));
  }
  for (size_t i = 0; i < std::min(loaded, expected); ++i) {
    std::vector<std::byte> bytes(pages_->block_bytes());
    CHECK(pages_->CopyOut(pages[i], bytes.data()).ok());
    if (bytes == BytesOf(run[i].number)) continue;
    Differ(absl::StrCat("wrong bytes in page ", i));
  }
}

size_t TierProgram::CountIntact(std::span<const Block> run) const {
  const auto is_lost = [&](const Block& block) {
    return !host_.reference.IsIntact(block.number) &&
           !disk_.reference.IsIntact(block.number);
  };
  return static_cast<size_t>(std::ranges::find_if(run, is_lost) - run.begin());
}

// Removes from the reference the damaged blocks that a load has found. Which of
// them a load reads depends on where the other blocks are, so the tier is
// asked.
void TierProgram::TakeFoundDamage(Tier& tier, std::span<const Block> run) {
  for (const Block& block : run) {
    const PageHash hash = HashOf(block.number);
    const bool is_damaged = tier.reference.IsStored(block.number) &&
                            tier.reference.IsDamaged(block.number);
    if (!is_damaged || tier.tier->CountStored({&hash, 1}) == 1) continue;
    tier.reference.FindDamage(block.number);
    ++tier.damaged_pages;
  }
}

void TierProgram::Touch() {
  const std::vector<Block> prompt = AnyPrompt();
  Say(absl::StrCat("touch ", Text(prompt)));
  stack_->Touch(HashesOf(prompt));
  host_.reference.Touch(prompt);
  disk_.reference.Touch(prompt);
  Tell(host_, prompt);
  Tell(disk_, prompt);
}

void TierProgram::Forget() {
  const std::optional<uint64_t> ns = AnyNamespaceOrAll();
  Say("forget " + Text(ns));
  stack_->Forget(ns);
  host_.reference.Forget(ns);
  host_.reference.EraseForgotten();
  disk_.reference.Forget(ns);
}

void TierProgram::EraseForgotten() {
  Say("erase what is forgotten");
  stack_->EraseForgotten();
  host_.reference.EraseForgotten();
  disk_.reference.EraseForgotten();
}

void TierProgram::Restart() {
  Say("restart");
  Open();
  host_.reference.Clear();
  std::vector<uint64_t> by_slot;
  for (const std::optional<uint64_t>& number :
       RecordsIn(folder_, disk_.slots)) {
    if (number.has_value()) by_slot.push_back(*number);
  }
  disk_.reference.Restart(by_slot);
}

void TierProgram::DamageDisk() {
  const uint32_t slot = below_(static_cast<uint32_t>(disk_.slots));
  const std::optional<uint64_t> number = RecordsIn(folder_, disk_.slots)[slot];
  if (!number.has_value() || disk_.reference.IsDamaged(*number)) return;
  const uint64_t at =
      slot * kSlotBytes + below_(static_cast<uint32_t>(pages_->block_bytes()));
  Say(absl::StrCat("flip a bit of slot ", slot, " on disk"));
  FlipBit(folder_, at);
  disk_.reference.Damage(*number);
}

// Slots in memory do not say which block they have, and keep the bytes of
// erased blocks. So a bit is flipped in every slot that has the bytes of the
// block.
void TierProgram::DamageHost() {
  const std::set<uint64_t> numbers = host_.reference.Copies();
  if (numbers.empty()) return;
  const uint64_t number = *std::next(
      numbers.begin(), below_(static_cast<uint32_t>(numbers.size())));
  if (host_.reference.IsDamaged(number)) return;
  const std::vector<std::byte> bytes = BytesOf(number);
  const uint32_t at = below_(static_cast<uint32_t>(bytes.size()));
  Say(absl::StrCat("flip a bit in memory of block ", number & 0xffffffff));
  for (uint32_t slot = 0; slot < memory_->slots(); ++slot) {
    std::byte* const block = memory_->BlockFor(slot, nullptr);
    if (std::ranges::equal(std::span(block, bytes.size()), bytes)) {
      block[at] ^= std::byte{1};
    }
  }
  host_.reference.Damage(number);
}

void TierProgram::CompareFiles() {
  std::set<uint64_t> on_disk;
  for (const std::optional<uint64_t>& number :
       RecordsIn(folder_, disk_.slots)) {
    if (!number.has_value() || on_disk.insert(*number).second) continue;
    Differ(absl::StrCat("two copies of ", *number));
  }
  if (on_disk != disk_.reference.Copies()) {
    Differ("other blocks on disk than there must be");
  }
}

void TierProgram::Compare(const std::string& name, Tier& tier) {
  const TierFigures figures = tier.tier->figures();
  if (figures.held_pages != tier.reference.stored() ||
      figures.damaged_pages != tier.damaged_pages) {
    Differ(absl::StrCat(name, ": held ", figures.held_pages, " instead of ",
                        tier.reference.stored(), ", damaged ",
                        figures.damaged_pages, " instead of ",
                        tier.damaged_pages));
  }
  for (uint32_t ns = 0; ns < kNamespaces; ++ns) {
    CompareBelow(Root(ns), name, tier);
  }
  CompareTold(name, tier);
}

void TierProgram::CompareTold(const std::string& name, Tier& tier) {
  for (const TierChange& change : tier.tier->TakeChanges()) {
    const bool is_news = change.stored.has_value()
                             ? tier.told.insert(change.hash).second
                             : tier.told.erase(change.hash) == 1;
    if (!is_news) Differ(name + ": told twice");
  }
  std::erase_if(tier.known, [&](const PageHash& hash) {
    return tier.tier->CountStored({&hash, 1}) == 0;
  });
  if (tier.told != tier.known) {
    Differ(absl::StrCat(name, ": told of ", tier.told.size(), " instead of ",
                        tier.known.size()));
  }
}

void TierProgram::CompareBelow(const Block& parent, const std::string& name,
                               const Tier& tier) {
  if (parent.ordinal == kMaxPrompt) return;
  for (const uint32_t branch : {0, 1}) {
    const Block block = Child(parent, branch);
    const PageHash hash = HashOf(block.number);
    const bool is_found = tier.tier->CountStored({&hash, 1}) == 1;
    if (is_found != tier.reference.IsStored(block.number)) {
      Differ(absl::StrCat(name, ": block ", block.number,
                          is_found ? " is" : " is not", " found"));
    }
    CompareBelow(block, name, tier);
  }
}

}  // namespace pando::tier_program
