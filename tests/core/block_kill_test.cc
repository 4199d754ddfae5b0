// Kills a process with blocks at random moments, and checks that the next
// process on the ledger has the blocks.

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/block_cache.h"
#include "core/blocks/block_ledger.h"
#include "core/operators/earlier_blocks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

constexpr uint32_t kExtentPlaces = 8;
constexpr uint32_t kExtents = 16;
constexpr uint32_t kPrompts = 60;
constexpr uint32_t kKeys = 5;  // for each prompt
constexpr uint32_t kKeyBytes = 20;
constexpr uint32_t kKinds = 3;
constexpr uint32_t kNoPrompt = kPrompts;
constexpr int kKills = 150;

BlockOptions Options(std::span<std::byte> ledger) {
  return {.memory_bytes = kExtents * kExtentPlaces * kPlaceBytes,
          .extent_bytes = kExtentPlaces * kPlaceBytes,
          .ledger = ledger};
}

// Returns the spec of a kind whose blocks have 1, 2 or 3 places. The sizes
// differ so that extents change their block size when they move.
KindSpec SpecOf(uint32_t kind) {
  return {.ns = {},
          .identity = std::to_string(kind),
          .label = "",
          .key_bytes = kKeyBytes,
          .shard_bytes = kPlaceBytes * (kind + 1),
          .shards = 1};
}

std::string KeysOf(uint32_t prompt) {
  std::string keys;
  for (uint32_t i = 0; i < kKeys; ++i) {
    std::string key = std::to_string(prompt) + "/" + std::to_string(i) + "/";
    key.resize(kKeyBytes, 'k');
    keys += key;
  }
  return keys;
}

// Returns the first bytes of a block.
std::string ContentOf(uint32_t kind, std::string_view key) {
  return std::to_string(kind) + " has " + std::string(key);
}

// The memory that outlives a process.
struct Shared {
  alignas(kLedgerPage) std::byte bytes[kExtents * kExtentPlaces * kPlaceBytes];
  std::atomic<uint64_t> calls;
  // The prompt and the kind of the last Publish that was answered. `prompt` is
  // kNoPrompt while another call may remove the prompt's blocks.
  std::atomic<uint32_t> prompt = kNoPrompt;
  std::atomic<uint32_t> kind;
};

// One process on the ledger, together with the worker that it serves.
class Life {
 public:
  Life(Shared* shared, std::span<std::byte> ledger)
      : shared_(shared),
        cache_(PrefixCache::Options{
            .page_tokens = 4, .capacity_pages = 2, .blocks = Options(ledger)}) {
    const SessionId before(1);
    cache_.OpenSession(before, "before");
    EarlierBlocks earlier(before);
    cache_.Step(earlier);
    cache_.CloseSession(before);
    BlockLedger::Complete(ledger);
    cache_.OpenSession(session_, "worker");
    std::vector<KindSpec> specs;
    for (uint32_t kind = 0; kind < kKinds; ++kind) {
      specs.push_back(SpecOf(kind));
    }
    kinds_ = *blocks_.OpenKinds(session_, specs);
  }

  [[noreturn]] void Work(uint64_t seed) {
    std::minstd_rand random(static_cast<uint32_t>(seed) | 1);
    while (true) {
      ++shared_->calls;
      const auto kind = static_cast<uint32_t>(random() % kKinds);
      const auto prompt = static_cast<uint32_t>(random() % kPrompts);
      switch (random() % 16) {
        case 0:
          if (random() % 8 == 0) Reset(kind);
          break;
        case 1:
        case 2:
          Read(kind, prompt);
          break;
        default:
          Store(kind, prompt, random() % 16 == 0);
      }
    }
  }

  std::vector<std::string> Violations() { return cache_.CheckInvariants(); }

  // Returns a description of the first error: an invariant that does not hold,
  // a block that has the bytes of another key, or a published block that is
  // missing. Returns an empty string if there is none.
  std::string Check() {
    const std::vector<std::string> violations = Violations();
    if (!violations.empty()) return violations[0];
    for (uint32_t kind = 0; kind < kKinds; ++kind) {
      for (uint32_t prompt = 0; prompt < kPrompts; ++prompt) {
        const std::vector<BlockPlace> places = Find(kind, prompt);
        const bool is_last = shared_->prompt == prompt && shared_->kind == kind;
        for (uint32_t i = 0; i < kKeys; ++i) {
          if (is_last && !IsPlace(places[i])) return "what was stored is gone";
          if (!IsPlace(places[i])) continue;
          const std::string key =
              KeysOf(prompt).substr(i * kKeyBytes, kKeyBytes);
          const std::string content = ContentOf(kind, key);
          if (std::memcmp(BytesAt(places[i]), content.data(), content.size())) {
            return "the bytes of " + key + " are not its own";
          }
        }
      }
    }
    return "";
  }

  void Store(uint32_t kind, uint32_t prompt, bool discards) {
    const std::string keys = KeysOf(prompt);
    const BlockKeys asked = Ask(kind, keys);
    const ReservationId id(1);
    shared_->prompt = kNoPrompt;  // other prompts' blocks may be evicted now
    const auto places = *blocks_.Reserve({session_, id, {&asked, 1}, true});
    for (uint32_t i = 0; i < kKeys; ++i) {
      if (!IsPlace(places[i])) continue;
      const std::string content =
          ContentOf(kind, keys.substr(i * kKeyBytes, kKeyBytes));
      std::memcpy(BytesAt(places[i]), content.data(), content.size());
    }
    if (discards) {
      blocks_.Discard(session_, id, {}).IgnoreError();
      return;
    }
    blocks_.Publish(session_, id, {}).IgnoreError();
    const auto is_stored = [](BlockPlace place) {
      return IsPlace(place) || place == kReadyBlock;
    };
    if (!std::ranges::all_of(places, is_stored)) return;  // no room
    shared_->kind = kind;
    shared_->prompt = prompt;
  }

  std::vector<BlockPlace> Find(uint32_t kind, uint32_t prompt) {
    const std::string keys = KeysOf(prompt);
    const BlockKeys asked = Ask(kind, keys);
    return *blocks_.Lookup(session_, {&asked, 1});
  }

 private:
  std::byte* BytesAt(BlockPlace place) const {
    return shared_->bytes + place.value() * kPlaceBytes;
  }

  BlockKeys Ask(uint32_t kind, const std::string& keys) const {
    return {.kind = kinds_[kind].number, .keys = keys, .before = {}};
  }

  void Read(uint32_t kind, uint32_t prompt) {
    const std::string keys = KeysOf(prompt);
    const BlockKeys asked = Ask(kind, keys);
    const BlockLockId lock(1);
    blocks_.Acquire({session_, lock, {&asked, 1}, false}).IgnoreError();
    blocks_.Release(session_, {&lock, 1}).IgnoreError();
  }

  void Reset(uint32_t kind) {
    shared_->prompt = kNoPrompt;
    kinds_[kind] =
        blocks_.ResetKinds(session_, {&kinds_[kind].number, 1})->front();
  }

  Shared* const shared_;
  PrefixCache cache_;
  BlockCache blocks_{&cache_};
  const SessionId session_{2};
  std::vector<BlockKind> kinds_;
};

// Maps memory that processes made by fork share.
std::byte* MapShared(size_t bytes) {
  return static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

TEST(BlockKillTest, TheNextProcessHasTheBlocksOfAKilledOneWithTheirBytes) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const uint64_t ledger_bytes = BlockLedger::BytesFor(Options({}));
  const std::span<std::byte> ledger(MapShared(ledger_bytes), ledger_bytes);
  auto* const shared = new (MapShared(sizeof(Shared))) Shared();
  for (int kill_count = 0; kill_count < kKills; ++kill_count) {
    const uint64_t goal = shared->calls + 1 + random() % 200;
    const uint64_t pause = random() % 2'000;
    const uint64_t work = random();
    const pid_t child = fork();
    if (child == 0) Life(shared, ledger).Work(work);
    ASSERT_GT(child, 0);
    while (shared->calls < goal) sched_yield();
    for (std::atomic<uint64_t> spins = 0; spins < pause; ++spins) {
    }
    kill(child, SIGKILL);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    // The check works on a copy, so that the next child takes over the ledger
    // as the killed child left it.
    std::vector<uint64_t> copy(ledger_bytes / sizeof(uint64_t));
    std::memcpy(copy.data(), ledger.data(), ledger_bytes);
    const std::span<std::byte> left = std::as_writable_bytes(std::span(copy));
    ASSERT_TRUE(BlockLedger::IsOf(Options(left)));
    ASSERT_EQ(Life(shared, left).Check(), "") << "kill " << kill_count;
  }
}

// The process that made a ledger may have died before it withheld the blocks
// that other processes still write to.
TEST(BlockKillTest, ALedgerThatIsNotCompleteIsNotTakenOver) {
  std::vector<uint64_t> words(BlockLedger::BytesFor(Options({})) /
                              sizeof(uint64_t));
  const std::span<std::byte> ledger = std::as_writable_bytes(std::span(words));
  const BlockLedger made(Options(ledger));
  EXPECT_FALSE(BlockLedger::IsOf(Options(ledger)));
  BlockLedger::Complete(ledger);
  EXPECT_TRUE(BlockLedger::IsOf(Options(ledger)));
}

// The number of a kind that was not taken over is given to a new kind, which
// must not find the damaged kind's blocks.
TEST(BlockKillTest, TheBlocksOfAKindWhoseFactsAreDamagedAreThoseOfNoOther) {
  std::vector<uint64_t> words(BlockLedger::BytesFor(Options({})) /
                              sizeof(uint64_t));
  const std::span<std::byte> ledger = std::as_writable_bytes(std::span(words));
  auto shared = std::make_unique<Shared>();
  {
    Life life(shared.get(), ledger);
    for (uint32_t prompt = 0; prompt < 5; ++prompt) {
      life.Store(kKinds - 1, prompt, false);
    }
  }
  auto* const kinds = reinterpret_cast<KindFacts*>(ledger.data() + kLedgerPage);
  kinds[kKinds - 1].identity.data[0] ^= 1;
  for (int death = 0; death < 2; ++death) {
    Life life(shared.get(), ledger);
    EXPECT_THAT(life.Violations(), testing::IsEmpty());
    for (uint32_t prompt = 0; prompt < 5; ++prompt) {
      EXPECT_THAT(life.Find(kKinds - 1, prompt), testing::Each(kMissingBlock));
    }
  }
}

// The test also makes ledgers that no process could have left behind.
TEST(BlockKillTest, AnyBytesInALedgerLeaveTheCacheWhole) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const uint64_t ledger_bytes = BlockLedger::BytesFor(Options({}));
  auto shared = std::make_unique<Shared>();
  for (int round = 0; round < 60; ++round) {
    std::vector<uint64_t> words(ledger_bytes / sizeof(uint64_t));
    const std::span<std::byte> ledger =
        std::as_writable_bytes(std::span(words));
    {
      Life life(shared.get(), ledger);
      for (uint32_t prompt = 0; prompt < kPrompts; ++prompt) {
        life.Store(prompt % kKinds, prompt, false);
      }
    }
    std::vector<size_t> used;
    for (size_t i = sizeof(BlockLedgerHeader); i < ledger.size(); ++i) {
      if (ledger[i] != std::byte{0}) used.push_back(i);
    }
    for (uint64_t changes = 1 + random() % 40; changes-- > 0;) {
      ledger[used[random() % used.size()]] = std::byte(random());
    }
    Life life(shared.get(), ledger);
    ASSERT_THAT(life.Violations(), testing::IsEmpty()) << "round " << round;
    for (uint32_t prompt = 0; prompt < kPrompts; ++prompt) {
      life.Store(prompt % kKinds, prompt, prompt % 7 == 0);
    }
    ASSERT_THAT(life.Violations(), testing::IsEmpty()) << "round " << round;
  }
}

}  // namespace
}  // namespace pando
