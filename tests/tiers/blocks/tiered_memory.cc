#include "tests/tiers/blocks/tiered_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <span>
#include <system_error>
#include <utility>

#include "absl/time/clock.h"
#include "base/check.h"
#include "gpu/page_checksum_plan.h"

namespace pando {
namespace {

// The pause between two looks at what threads have done.
constexpr absl::Duration kLookAgain = absl::Milliseconds(1);

HostMemory MakeMemory(uint64_t bytes) {
  auto memory = HostMemory::Create("the block memory", bytes);
  CHECK(memory.ok());
  return *std::move(memory);
}

// Maps the memory as an engine does.
std::byte* Mapped(const HostMemory& memory) {
  auto fd = memory.Export();
  CHECK(fd.ok());
  void* const mapped = mmap(nullptr, memory.bytes(), PROT_READ | PROT_WRITE,
                            MAP_SHARED, fd->get(), 0);
  CHECK(mapped != MAP_FAILED);
  return static_cast<std::byte*>(mapped);
}

}  // namespace

std::vector<std::filesystem::path> FilesIn(const std::string& folder) {
  namespace fs = std::filesystem;
  while (true) {
    std::vector<fs::path> files;
    std::error_code gone;
    fs::recursive_directory_iterator it(folder, gone);
    for (; !gone && it != fs::recursive_directory_iterator();
         it.increment(gone)) {
      const bool is_file = it->is_regular_file(gone);
      if (gone) break;
      if (is_file && it->path().filename() != "lock") {
        files.push_back(it->path());
      }
    }
    if (gone) continue;
    std::ranges::sort(files);
    return files;
  }
}

void Damage(const std::filesystem::path& file, std::mt19937& random) {
  std::error_code gone;
  if (random() % 2 == 0) {
    std::filesystem::resize_file(file, random() % 8'192, gone);
    return;
  }
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(random() % 6'000)
      .put(static_cast<char>(random() % 256));
}

Wakeup* RequestedActions::AddWakeup(std::function<void()> action) {
  wakeups_.emplace_back().action = std::move(action);
  return &wakeups_.back();
}

void RequestedActions::Run() {
  for (Requested& wakeup : wakeups_) {
    if (wakeup.is_requested.exchange(false)) wakeup.action();
  }
}

TieredMemory::TieredMemory(const std::string& folder, uint64_t memory_bytes,
                           uint64_t tier_bytes, bool stores_at_once)
    : TieredMemory(memory_bytes, {.disk = {folder, tier_bytes},
                                  .shared = std::nullopt,
                                  .timeouts = {},
                                  .stores_at_once = stores_at_once}) {}

TieredMemory::TieredMemory(uint64_t memory_bytes, BlockTier::Config config)
    : memory_(MakeMemory(memory_bytes)),
      mapped_(Mapped(memory_)),
      cache_({.page_tokens = 1,
              .capacity_pages = 2,
              .blocks = {.memory_bytes = memory_bytes,
                         .extent_bytes = kExtentBytes}}),
      blocks_(&cache_) {
  cache_.OpenSession(session_, "engine");
  auto tier = BlockTier::Start(std::move(config), {.cache = &cache_,
                                                   .blocks = &blocks_,
                                                   .memory = &memory_,
                                                   .actions = &actions_});
  CHECK(tier.ok());
  tier_ = *std::move(tier);
}

TieredMemory::~TieredMemory() {
  tier_.reset();
  cache_.CloseSession(session_);
  munmap(mapped_, memory_.bytes());
}

BlockKind TieredMemory::Open(const std::string& identity,
                             uint64_t shard_bytes) {
  const KindSpec spec = {.ns = {},
                         .identity = identity,
                         .label = identity,
                         .key_bytes = kKeyBytes,
                         .shard_bytes = shard_bytes,
                         .shards = 2};
  auto kinds = blocks_.OpenKinds(session_, {&spec, 1});
  CHECK(kinds.ok());
  tier_->Opened(*kinds);
  return kinds->front();
}

BlockKind TieredMemory::Reset(const BlockKind& kind) {
  BlockKind renewed = kind;
  WaitingReset call;
  if (!BeginReset(renewed, call)) Await(call);
  return renewed;
}

bool TieredMemory::BeginReset(BlockKind& kind, Resumable& call) {
  auto kinds = blocks_.ResetKinds(session_, {&kind.number, 1});
  CHECK(kinds.ok());
  tier_->Renewed(*kinds);
  kind = kinds->front();
  return tier_->AreRenewed(call);
}

void TieredMemory::Await(const WaitingReset& call) {
  while (!call.is_resumed) {
    absl::SleepFor(kLookAgain);
    actions_.Run();
  }
}

std::string TieredMemory::KeyOf(uint32_t number) {
  std::string key(kKeyBytes, 'k');
  std::memcpy(key.data(), &number, sizeof(number));
  return key;
}

std::string TieredMemory::KeysOf(const std::vector<uint32_t>& numbers) {
  std::string keys;
  for (uint32_t number : numbers) keys += KeyOf(number);
  return keys;
}

std::vector<uint32_t> TieredMemory::Store(const BlockKind& kind,
                                          const std::vector<uint32_t>& numbers,
                                          uint64_t seed) {
  const std::string keys = KeysOf(numbers);
  const BlockKeys asked = {.kind = kind.number, .keys = keys, .before = {}};
  const ReservationId reservation(++last_id_);
  const auto places = blocks_.Reserve(
      {.session = session_, .reservation = reservation, .keys = {&asked, 1}});
  CHECK(places.ok());
  std::vector<uint32_t> stored;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const BlockPlace place = (*places)[i];
    if (!IsPlace(place)) continue;
    const auto bytes = BytesOf(kind, numbers[i], seed);
    std::ranges::copy(bytes, At(place));
    stored.push_back(numbers[i]);
  }
  std::vector<KeysOfKind> published;
  CHECK(blocks_.Publish(session_, reservation, {}, &published).ok());
  tier_->Published(std::move(published));
  published_ += stored.size();
  return stored;
}

void TieredMemory::AwaitStores() {
  while (true) {
    const BlockTiersFigures all = tier_->figures();
    const BlockTierFigures& figures = all.shared ? *all.shared : all.disk;
    if (figures.stored_blocks + figures.dropped_blocks +
            figures.failed_writes >=
        published_) {
      return;
    }
    absl::SleepFor(kLookAgain);
  }
}

size_t TieredMemory::Ask(const AskedOfTier& asked,
                         std::vector<BlockPlace>& places, uint32_t* found) {
  BlockLook look = tier_->Look(asked, places);
  size_t steps = 1;
  while (!look.Step()) ++steps;
  if (found != nullptr) *found = look.found();
  return steps;
}

std::vector<BlockPlace> TieredMemory::Load(const BlockKind& kind,
                                           const std::vector<uint32_t>& numbers,
                                           BlockShape shape, uint32_t window) {
  const std::string keys = KeysOf(numbers);
  const BlockKeys asked = {.kind = kind.number,
                           .keys = keys,
                           .before = {},
                           .shape = shape,
                           .window = window};
  // The locks keep the blocks that were found, so that loads do not evict them.
  std::vector<BlockLockId> locks;
  while (true) {
    locks.emplace_back(++last_id_);
    auto places = blocks_.Acquire(
        {.session = session_, .lock = locks.back(), .keys = {&asked, 1}});
    CHECK(places.ok());
    Ask({.session = session_,
         .keys = {&asked, 1},
         .looks = true,
         .loads = true},
        *places);
    if (std::ranges::find(*places, kPendingBlock) == places->end()) {
      CHECK(blocks_.Release(session_, locks).ok());
      return *std::move(places);
    }
    absl::SleepFor(kLookAgain);
  }
}

bool TieredMemory::Holds(const BlockKind& kind, BlockPlace place,
                         uint32_t number, uint64_t seed) const {
  const auto expected = BytesOf(kind, number, seed);
  return std::ranges::equal(
      expected, std::span<const std::byte>(At(place), expected.size()));
}

std::vector<std::byte> TieredMemory::BytesOf(const BlockKind& kind,
                                             uint32_t number,
                                             uint64_t seed) const {
  std::vector<uint64_t> words(kind.shard_stride * kind.spec.shards / 8);
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = MixWord(MixWord(seed, number), i);
  }
  const auto bytes = std::as_bytes(std::span(words));
  return {bytes.begin(), bytes.end()};
}

}  // namespace pando
