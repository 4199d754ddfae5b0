// The metrics of the block memory: the blocks in it, and how they are found and
// evicted.

#include "service/metrics/catalogue.h"

namespace pando {
namespace {

using Snapshot = MetricsSnapshot;

// Collects series of blocks by state, each block counted as `measure` of its
// kind.
template <typename Measure>
Metric::Collect ByState(Measure measure) {
  return [measure](const Snapshot& s, Samples& out) {
    double evictable = 0, locked = 0, written = 0;
    for (const KindStats& kind : s.blocks.kinds) {
      const double each = measure(kind);
      evictable +=
          each * static_cast<double>(kind.ready_blocks - kind.locked_blocks);
      locked += each * static_cast<double>(kind.locked_blocks);
      written += each * static_cast<double>(kind.written_blocks);
    }
    out.Add({"evictable"}, evictable);
    out.Add({"protected"}, locked);
    out.Add({"reserved"}, written);
  };
}

KindCounters SumOf(const Snapshot& s) {
  KindCounters sum = s.blocks.ended_kinds;
  for (const KindStats& kind : s.blocks.kinds) sum += kind.counters;
  return sum;
}

Metric Counted(std::string name, std::string help,
               uint64_t KindCounters::*counter) {
  return Counter(std::move(name), std::move(help),
                 [counter](const Snapshot& s) {
                   return static_cast<double>(SumOf(s).*counter);
                 });
}

std::vector<MetricLabel> KindLabel() {
  return {{"kind",
           "the labels of the 16 kinds that were opened first, `unnamed` where "
           "there is none, and `other`"}};
}

Metric::Collect OfEachKind(uint64_t BlockKindFigures::*figure) {
  return [figure](const Snapshot& s, Samples& out) {
    for (const BlockKindFigures& kind : s.block_kinds) {
      out.Add({kind.name}, static_cast<double>(kind.*figure));
    }
  };
}

// Series of the shared store exist only if there is one.
MetricLabel BlockTierLabel() {
  return {"tier", "`disk`; with `--block-tier-shared` also `remote`"};
}

// Collects a metric with series for each tier. `add` adds the series of one
// tier.
template <typename Add>
Metric::Collect ByBlockTier(Add add) {
  return [add](const Snapshot& s, Samples& out) {
    add("disk", s.block_tiers.disk, out);
    if (s.block_tiers.shared) add("remote", *s.block_tiers.shared, out);
  };
}

Metric::Collect ByWay(uint64_t BlockTierFigures::*stored,
                      uint64_t BlockTierFigures::*loaded) {
  return ByBlockTier([stored, loaded](const char* tier,
                                      const BlockTierFigures& t, Samples& out) {
    out.Add({tier, "store"}, static_cast<double>(t.*stored));
    out.Add({tier, "load"}, static_cast<double>(t.*loaded));
  });
}

Metric OfDisk(std::string name, std::string help,
              uint64_t BlockTierFigures::*figure) {
  return Gauge(std::move(name), std::move(help), [figure](const Snapshot& s) {
    return static_cast<double>(s.block_tiers.disk.*figure);
  });
}

void AddDroppedBlocks(const char* tier, const BlockTierFigures& t,
                      Samples& out) {
  out.Add({tier}, static_cast<double>(t.dropped_blocks));
}

void AddFailedBlocks(const char* tier, const BlockTierFigures& t,
                     Samples& out) {
  out.Add({tier, "write"}, static_cast<double>(t.failed_writes));
  out.Add({tier, "read"}, static_cast<double>(t.failed_reads));
  out.Add({tier, "verify"}, static_cast<double>(t.damaged_blocks));
}

void AddRefusedBlocks(const Snapshot& s, Samples& out) {
  const std::optional<BlockTierFigures>& shared = s.block_tiers.shared;
  if (!shared.has_value()) return;
  out.Add({"store"}, shared->are_stores_refused ? 1 : 0);
  out.Add({"load"}, shared->are_loads_refused ? 1 : 0);
}

}  // namespace

std::vector<Metric> BlockMetrics() {
  return {
      Gauge("pando_block_memory_bytes", "Bytes of the block memory.",
            [](const Snapshot& s) {
              return static_cast<double>(s.blocks.memory_bytes);
            }),
      Gauge(
          "pando_block_extents",
          "Extents of the block memory: those that a kind has, and those that "
          "none has.",
          {{"state", ""}},
          [](const Snapshot& s, Samples& out) {
            out.Add({"used"}, s.blocks.extents - s.blocks.free_extents);
            out.Add({"free"}, s.blocks.free_extents);
          }),
      Gauge("pando_block_quota_bytes",
            "Bytes of the extents that the kinds of a quota have.",
            {{"quota", "the configured block quotas"}},
            [](const Snapshot& s, Samples& out) {
              for (const BlockQuotaStats& quota : s.blocks.quotas) {
                out.Add({quota.quota.name},
                        static_cast<double>(quota.used_bytes));
              }
            }),
      Gauge(
          "pando_blocks",
          "Blocks by state. Protected ones are locked; reserved ones are being "
          "written, or were by a session that is lost.",
          {{"state", ""}}, ByState([](const KindStats&) { return 1.0; })),
      Gauge("pando_block_bytes", "Bytes of the blocks by state.",
            {{"state", ""}}, ByState([](const KindStats& kind) {
              return static_cast<double>(kind.block_bytes);
            })),
      Gauge("pando_block_kinds",
            "Kinds of blocks that a session has open or that have blocks.",
            [](const Snapshot& s) {
              return static_cast<double>(s.blocks.kinds.size());
            }),
      Gauge("pando_block_locks", "Block locks held now.",
            [](const Snapshot& s) { return s.blocks.locks; }),
      Gauge("pando_block_reservations", "Reservations of blocks held now.",
            [](const Snapshot& s) { return s.blocks.reservations; }),
      Gauge(
          "pando_block_quarantined",
          "Reserved blocks of lost sessions that a process may still write to.",
          [](const Snapshot& s) {
            return static_cast<double>(s.blocks.quarantined_blocks);
          }),
      Gauge("pando_block_index_bytes",
            "Memory of pandod that the records and indexes of blocks take.",
            [](const Snapshot& s) {
              return static_cast<double>(s.blocks.index_bytes);
            }),
      Counter("pando_block_recoveries_total",
              "How often a pandod took the blocks over from the one before.",
              [](const Snapshot& s) {
                return static_cast<double>(s.blocks.recoveries);
              }),
      Counter(
          "pando_block_keys_total",
          "Keys that LookupBlocks and AcquireBlocks looked at, by what they "
          "found.",
          {{"result", ""}},
          [](const Snapshot& s, Samples& out) {
            const KindCounters sum = SumOf(s);
            out.Add({"hit"}, static_cast<double>(sum.hits));
            out.Add({"miss"}, static_cast<double>(sum.misses));
            out.Add({"pending"}, static_cast<double>(sum.pending));
          }),
      Counted("pando_blocks_reserved_total", "Blocks reserved.",
              &KindCounters::reserved),
      Counted("pando_blocks_published_total", "Blocks published.",
              &KindCounters::published),
      Counted("pando_blocks_discarded_total",
              "Reserved blocks that were given back unpublished, by a call or "
              "with their session.",
              &KindCounters::discarded),
      Counted("pando_blocks_duplicate_total",
              "Blocks published although their key was ready already.",
              &KindCounters::duplicates),
      Counted(
          "pando_blocks_overdue_total",
          "Blocks reserved anew because they took longer to be written than "
          "--block-write-limit.",
          &KindCounters::overdue),
      Counted("pando_blocks_no_room_total",
              "Keys that ReserveBlocks found no room for.",
              &KindCounters::no_room),
      Counter(
          "pando_block_evictions_total",
          "Blocks evicted: to make room for one of their kind, because their "
          "extent went to another kind, or because their kind ended.",
          {{"reason", ""}},
          [](const Snapshot& s, Samples& out) {
            const auto evicted = SumOf(s).evicted;
            const auto add = [&](const char* reason, BlockEviction which) {
              out.Add({reason},
                      static_cast<double>(evicted[static_cast<size_t>(which)]));
            };
            add("room", BlockEviction::kRoom);
            add("extent", BlockEviction::kExtent);
            add("kind_ended", BlockEviction::kReset);
          }),
      Gauge("pando_block_kind_bytes", "Bytes of the extents that a kind has.",
            KindLabel(), OfEachKind(&BlockKindFigures::bytes)),
      Gauge("pando_block_kind_blocks", "Blocks of a kind that are ready.",
            KindLabel(), OfEachKind(&BlockKindFigures::ready_blocks)),
      Counter("pando_block_kind_hits_total", "Keys of a kind that were ready.",
              KindLabel(), OfEachKind(&BlockKindFigures::hits)),
      Counter("pando_block_kind_misses_total",
              "Keys of a kind that were missing.", KindLabel(),
              OfEachKind(&BlockKindFigures::misses)),
      Counter("pando_block_kind_evictions_total", "Evicted blocks of a kind.",
              KindLabel(), OfEachKind(&BlockKindFigures::evictions)),
      Counter("pando_block_kind_tier_stores_total",
              "Blocks of a kind that were copied to a tier.", KindLabel(),
              OfEachKind(&BlockKindFigures::stored)),
      Counter("pando_block_kind_tier_loads_total",
              "Blocks of a kind that were loaded from a tier.", KindLabel(),
              OfEachKind(&BlockKindFigures::loaded)),
      OfDisk("pando_block_tier_capacity_bytes",
             "The most bytes that the disk tier of blocks takes.",
             &BlockTierFigures::capacity_bytes),
      OfDisk("pando_block_tier_bytes",
             "Bytes that it takes, with the files of reset kinds that are not "
             "deleted yet.",
             &BlockTierFigures::held_bytes),
      OfDisk("pando_block_tier_blocks", "Blocks that it has.",
             &BlockTierFigures::held_blocks),
      OfDisk("pando_block_tier_index_bytes",
             "Memory of pandod that the index of these blocks takes.",
             &BlockTierFigures::index_bytes),
      Counter("pando_block_tier_copied_blocks_total",
              "Blocks copied to a tier (store), and back into the memory "
              "(load).",
              {BlockTierLabel(), {"direction", ""}},
              ByWay(&BlockTierFigures::stored_blocks,
                    &BlockTierFigures::loaded_blocks)),
      Counter("pando_block_tier_copied_bytes_total",
              "The bytes of these blocks.",
              {BlockTierLabel(), {"direction", ""}},
              ByWay(&BlockTierFigures::stored_bytes,
                    &BlockTierFigures::loaded_bytes)),
      Counter(
          "pando_block_tier_dropped_blocks_total",
          "Blocks that were not stored: the tier was too slow, or they were "
          "evicted before their turn.",
          {BlockTierLabel()}, ByBlockTier(AddDroppedBlocks)),
      Counter("pando_block_tier_failures_total",
              "Copies of blocks that failed: they could not be written or "
              "read, or not in time, or what was read is not what had been "
              "stored (verify).",
              {BlockTierLabel(), {"step", ""}}, ByBlockTier(AddFailedBlocks)),
      Gauge("pando_block_tier_remote_refused",
            "1 from repeated failures of the shared store of blocks until it "
            "works again: it is tried from time to time. Only with such a "
            "store.",
            {{"direction", "`store`, `load`"}}, AddRefusedBlocks),
  };
}

}  // namespace pando
