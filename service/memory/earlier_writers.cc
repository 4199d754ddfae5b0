#include "service/memory/earlier_writers.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "core/operators/earlier_blocks.h"
#include "core/operators/earlier_pages.h"
#include "core/operators/rest_reservation.h"
#include "core/operators/session_ends.h"
#include "os/logging/log.h"
#include "os/monotonic_clock.h"
#include "os/random_id.h"

namespace pando {
namespace {

// The shortest quarantine. It is longer than a step of an engine, which uses
// its pages until the step ends.
constexpr absl::Duration kShortestTime = absl::Minutes(1);

// Reserves all of the block memory for `session`: each extent becomes one block
// of a kind made for this purpose.
void ReserveAllBlocks(BlockCache& blocks, SessionId session) {
  const BlockStats stats = blocks.Stats();
  const KindSpec spec = {.ns = {},
                         .identity = "pando-withheld",
                         .label = "withheld for workers of the pandod before",
                         .key_bytes = kMinKeyBytes,
                         .shard_bytes = stats.extent_bytes,
                         .shards = 1};
  const auto kinds = blocks.OpenKinds(session, {&spec, 1});
  if (!kinds.ok()) return;
  for (uint64_t done = 0, call = 1; done < stats.extents; ++call) {
    const uint64_t end =
        std::min<uint64_t>(stats.extents, done + kMaxBlockKeys);
    std::string keys;
    for (; done < end; ++done) {
      std::string key(kMinKeyBytes, '\0');
      key.replace(0, sizeof(done), reinterpret_cast<const char*>(&done),
                  sizeof(done));
      keys += key;
    }
    const BlockKeys all = {
        .kind = kinds->front().number, .keys = keys, .before = {}};
    blocks
        .Reserve({.session = session,
                  .reservation = ReservationId(call),
                  .keys = {&all, 1}})
        .IgnoreError();
  }
}

}  // namespace

EarlierWriters::EarlierWriters(PrefixCache* cache, BlockCache* blocks,
                               const KvPool& pool,
                               const HostMemory* block_memory,
                               Ledgers of_before, absl::Duration quarantine)
    : cache_(cache), time_(std::max(quarantine, kShortestTime)) {
  last_ = pool.LastWriter().value_or(WriterId(0));
  if (block_memory != nullptr) {
    const WriterId of_blocks = block_memory->LastWriter().value_or(WriterId(0));
    if (of_blocks.value() > last_.value()) last_ = of_blocks;
  }
  const auto maps_pool = [&pool, this] { return pool.IsHeldByAnyUpTo(last_); };
  if (of_before.pages) {
    TakeEarlierPages(maps_pool);
  } else if (maps_pool()) {
    Withhold(Reserve(
        [this](SessionId session) { cache_->Run(RestReservation(session)); },
        maps_pool));
  }
  if (block_memory == nullptr) return;
  const auto maps_blocks = [block_memory, this] {
    return block_memory->IsHeldByAnyUpTo(last_);
  };
  if (of_before.blocks) {
    TakeEarlierBlocks(maps_blocks);
  } else if (maps_blocks()) {
    Withhold(Reserve(
        [blocks](SessionId session) { ReserveAllBlocks(*blocks, session); },
        maps_blocks));
  }
}

void EarlierWriters::TakeEarlierPages(std::function<bool()> is_mapped) {
  Withheld reserved = Open(is_mapped);
  Withheld locked = Open(std::move(is_mapped));
  const EarlierPages earlier =
      cache_->Run(EarlierPages(reserved.session, locked.session));
  Log(LogLevel::kInfo, "pages of the pandod before are taken over",
      {{"pages", earlier.cached()},
       {"reserved", earlier.reserved()},
       {"locks", earlier.locks()}});
  WithholdIf(earlier.reserved(), std::move(reserved));
  if (earlier.locks() == 0) return cache_->CloseSession(locked.session);
  // A session that is lost loses its locks, so this one lives.
  locked.until = MonotonicNow() + time_;
  withheld_.push_back(std::move(locked));
}

void EarlierWriters::TakeEarlierBlocks(std::function<bool()> is_mapped) {
  uint64_t ready = 0;
  size_t in_use = 0;
  Withheld taken = Reserve(
      [this, &ready, &in_use](SessionId session) {
        EarlierBlocks earlier(session);
        cache_->Step(earlier);
        ready = earlier.ready();
        in_use = earlier.count();
      },
      std::move(is_mapped));
  Log(LogLevel::kInfo, "blocks of the pandod before are taken over",
      {{"blocks", ready}, {"in_use", in_use}});
  WithholdIf(in_use, std::move(taken));
}

void EarlierWriters::WithholdIf(size_t in_use, Withheld taken) {
  if (in_use > 0 && taken.is_mapped()) return Withhold(std::move(taken));
  cache_->CloseSession(taken.session);
  cache_->Run(SessionEnds());
}

EarlierWriters::Withheld EarlierWriters::Reserve(
    const std::function<void(SessionId)>& reserve,
    std::function<bool()> is_mapped) {
  Withheld opened = Open(std::move(is_mapped));
  reserve(opened.session);
  return opened;
}

EarlierWriters::Withheld EarlierWriters::Open(std::function<bool()> is_mapped) {
  const SessionId session(RandomId());
  const SessionNumber number = cache_->OpenSession(
      session, "workers of the pandod before", /*is_internal=*/true);
  // pandod knows that there are such workers, but not which processes they are.
  cache_->AttachSession(session, std::nullopt).IgnoreError();
  return {session, number, std::move(is_mapped)};
}

void EarlierWriters::Withhold(Withheld reserved) {
  const absl::Time now = MonotonicNow();
  cache_->SuspendSession(reserved.session, now);
  cache_->ExpireSessions(now, time_);
  cache_->Run(SessionEnds());  // the server has not started yet
  Log(LogLevel::kInfo,
      "workers of the pandod before map its memory: what they may use of it is "
      "in quarantine until they let go of it",
      {{"session", reserved.number.value()},
       {"seconds", absl::ToInt64Seconds(time_)}});
  withheld_.push_back(std::move(reserved));
}

void EarlierWriters::Check() {
  std::erase_if(withheld_, [this](const Withheld& each) {
    const bool is_mapped = each.is_mapped();
    if (is_mapped && MonotonicNow() < each.until) return false;
    // This has no effect if the quarantine is over already, by its time or by
    // an operator's call.
    cache_->CloseSession(each.session);
    Log(LogLevel::kInfo,
        is_mapped
            ? "workers of the pandod before have had their time: what they had "
              "locked may be evicted"
            : "no worker of the pandod before maps its memory: it is free",
        {{"session", each.number.value()}});
    return true;
  });
}

}  // namespace pando
