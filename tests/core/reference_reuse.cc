#include "tests/core/reference_reuse.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace pando {
namespace {

uint32_t LevelOf(uint32_t value, const std::vector<uint32_t>& bounds) {
  uint32_t level = 0;
  while (level < bounds.size() && value >= bounds[level]) ++level;
  return level;
}

uint32_t NewTokensOf(uint32_t tokens) {
  uint32_t level = 0;
  while (level < 7 && tokens >= (512u << level)) ++level;
  return level;
}

uint32_t ClassOf(const ReuseOfNode& of) {
  return LevelOf(of.uses, {2, 3, 4, 6, 9, 17, 65}) + 8 * of.interval +
         64 * of.output + 256 * of.new_tokens;
}

uint32_t BinOfAge(uint32_t age) {
  uint32_t bin = 0;
  while (bin + 1 < 40 && age >= std::exp2(bin / 2.0) - 1e-6) ++bin;
  return bin;
}

uint32_t IntervalOf(uint32_t age) {
  return 1 + LevelOf(age, {2, 7, 22, 63, 181, 511});
}

}  // namespace

ReferenceReuse::ReferenceReuse(ReferenceIndex* index, uint32_t page_tokens,
                               uint32_t capacity_pages, uint32_t warmup_ticks,
                               uint32_t first_tick)
    : index_(index),
      page_tokens_(page_tokens),
      capacity_(capacity_pages),
      warmup_ticks_(warmup_ticks),
      first_tick_(first_tick),
      tick_(first_tick) {
  for (const ReferenceIndex::NodeRun& run : index_->NodeRuns()) {
    run.node->reuse = {.uses = 0};
  }
}

// Returns the runs of all known nodes and ghosts, the least recently used
// first.
std::vector<ReferenceReuse::Run> ReferenceReuse::Runs() {
  std::vector<Run> runs;
  for (const ReferenceIndex::NodeRun& run : index_->NodeRuns()) {
    if (!IsKnown(*run.node)) continue;
    runs.push_back({run.node, run.pages, run.end.prefix.size(), false});
  }
  for (Ghost& ghost : ghosts_) {
    if (ghost.pages == 0) continue;
    runs.push_back({&ghost.node, ghost.pages, ghost.end.prefix.size(), true});
  }
  std::ranges::sort(runs, [](const Run& a, const Run& b) {
    return std::tuple(a.node->last_access, b.depth) <
           std::tuple(b.node->last_access, a.depth);
  });
  return runs;
}

RequestFacts ReferenceReuse::BeginRequest(size_t prompt_tokens,
                                          size_t cached_tokens) {
  ++tick_;
  for (const Run& run : Runs()) {
    const uint32_t age = tick_ - run.node->reuse.at;
    for (uint32_t bin = BinOfAge(age - 1) + 1; bin <= BinOfAge(age); ++bin) {
      tables_.CountReached(ClassOf(run.node->reuse), bin, run.pages);
    }
  }
  requested_ += prompt_tokens / page_tokens_;
  in_turn_ = 0;
  const auto ticks = static_cast<float>(tick_ - first_tick_);
  tables_.FitStep(std::max(1.0f, static_cast<float>(new_pages_) / ticks));
  return {.tick = tick_,
          .is_new = true,
          .prompt_tokens = static_cast<uint32_t>(prompt_tokens),
          .new_tokens = static_cast<uint32_t>(
              prompt_tokens - std::min(prompt_tokens, cached_tokens))};
}

uint32_t ReferenceReuse::BinOf(const Node& node) const {
  return BinOfAge(tick_ - node.reuse.at);
}

void ReferenceReuse::CountUse(const Node& node, uint32_t pages, bool is_ghost) {
  tables_.CountReused(ClassOf(node.reuse), BinOf(node), pages);
  const uint32_t in_shadow = std::min(pages, node.reuse.shadow_pages);
  lru_hits_ += in_shadow;
  if (!is_ghost) hits_ += pages;
  gain_ += int64_t{is_ghost ? 0 : pages} - in_shadow;
  gain_ = std::min<int64_t>(gain_, capacity_);
}

// Moves the counts of the node's pages to the class that the node's request has
// by now.
void ReferenceReuse::SetClass(Node& node, uint32_t pages,
                              const RequestFacts& facts) {
  const uint32_t from = ClassOf(node.reuse);
  node.reuse.output = LevelOf(facts.output_tokens, {64, 256, 768});
  node.reuse.new_tokens = NewTokensOf(facts.new_tokens);
  const uint32_t to = ClassOf(node.reuse);
  if (from != to) tables_.Reclassify(from, to, BinOf(node), pages);
}

// Puts the node into the shadow as the newest. The oldest nodes lose as many
// pages as no longer fit.
void ReferenceReuse::ToShadow(Node& node, uint32_t pages) {
  node.reuse.shadow_pages = pages;
  while (true) {
    const std::vector<Run> runs = Runs();
    uint64_t held = 0;
    Node* oldest = nullptr;
    for (const Run& run : runs) {
      held += run.node->reuse.shadow_pages;
      if (oldest == nullptr && run.node->reuse.shadow_pages > 0) {
        oldest = run.node;
      }
    }
    if (held <= capacity_) return;
    --oldest->reuse.shadow_pages;
    in_turn_ -= std::min<uint64_t>(in_turn_, 1);
  }
}

void ReferenceReuse::AddLeaf(const Place& place, uint32_t pages,
                             RequestFacts& facts) {
  struct Part {
    Place end;
    uint32_t uses;
    uint32_t interval;
  };
  std::vector<Part> parts;
  const auto shortened = [&](uint32_t by) { return Shortened(place, by); };
  uint32_t begin = 0;
  while (begin < pages) {
    Ghost* const ghost = GhostFrom(shortened(pages - begin - 1));
    if (ghost == nullptr) break;
    uint32_t used = 0;
    while (begin + used < pages && used < ghost->pages &&
           Shortened(ghost->end, ghost->pages - used - 1) ==
               shortened(pages - begin - used - 1)) {
      ++used;
    }
    CountUse(ghost->node, used, true);
    begin += used;
    const uint32_t interval = IntervalOf(tick_ - ghost->node.reuse.at);
    const uint32_t uses = std::min(255u, ghost->node.reuse.uses + 1);
    if (!parts.empty() && parts.back().uses == uses &&
        parts.back().interval == interval) {
      parts.back().end = shortened(pages - begin);
    } else {
      parts.push_back({shortened(pages - begin), uses, interval});
    }
    if (used == ghost->pages) {
      DropGhost(*ghost);
      continue;
    }
    // The ghost keeps the pages that come after the difference.
    const uint32_t left = ghost->pages - used;
    Ghost* const other = GhostFrom(Shortened(ghost->end, left - 1));
    uint32_t& in_shadow = ghost->node.reuse.shadow_pages;
    in_shadow -= std::min(in_shadow, used);
    ghost->pages = left;
    if (other != nullptr) ForgetGhost(*other);
  }
  ghost_hits_ += begin;
  facts.new_tokens -= std::min(facts.new_tokens, begin * page_tokens_);
  if (begin < pages) parts.push_back({place, 1, 0});
  new_pages_ += pages;

  Node& leaf = *index_->PathTo(place).back()->node;
  leaf.reuse = {.at = tick_};
  const auto set = [&](Node& node, const Part& part, uint32_t node_pages) {
    const uint32_t from = ClassOf(node.reuse);
    node.reuse.uses = part.uses;
    node.reuse.interval = part.interval;
    node.reuse.output = LevelOf(facts.output_tokens, {64, 256, 768});
    node.reuse.new_tokens = NewTokensOf(facts.new_tokens);
    if (node_pages > 0) {
      tables_.Reclassify(from, ClassOf(node.reuse), 0, node_pages);
    }
  };
  set(leaf, parts.back(), 0);
  tables_.CountReached(ClassOf(leaf.reuse), 0, pages);
  ToShadow(leaf, pages);
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    index_->EndNodeAt(parts[i].end);
    for (const Run& run : Runs()) {
      if (run.node == &*index_->PathTo(parts[i].end).back()->node) {
        set(*run.node, parts[i], run.pages);
      }
    }
  }
}

std::vector<ReferenceReuse::Run> ReferenceReuse::PathTo(const Place& place) {
  std::vector<Run> path;  // the deepest node first
  uint32_t pages = 0;
  for (ReferenceIndex::Page* page : index_->PathTo(place)) {
    ++pages;
    if (!page->node.has_value()) continue;
    path.insert(path.begin(), {&*page->node, pages, 0, false});
    pages = 0;
  }
  return path;
}

void ReferenceReuse::Use(const Place& place, RequestFacts* facts) {
  UseRuns(PathTo(place), facts);
  if (facts == nullptr) return;
  facts->tick = tick_;
  facts->is_new = false;
}

void ReferenceReuse::UseUnlocked(const Place& place) {
  std::vector<Run> runs;
  for (ReferenceIndex::Page* page : index_->PathTo(place)) {
    if (page->locks > 0) continue;
    for (const Run& run : PathTo(place)) {
      if (page->node.has_value() && run.node == &*page->node) {
        runs.insert(runs.begin(), run);
      }
    }
  }
  UseRuns(runs, nullptr);
}

// Makes a node known at its first use. LRU would have found the node, too.
void ReferenceReuse::Meet(Node& node, uint32_t pages,
                          const RequestFacts* facts) {
  node.reuse.uses = std::clamp(node.hits, 1u, 255u);
  if (facts != nullptr) {
    node.reuse.output = LevelOf(facts->output_tokens, {64, 256, 768});
    node.reuse.new_tokens = NewTokensOf(facts->new_tokens);
  }
  tables_.CountReached(ClassOf(node.reuse), 0, pages);
  if (facts == nullptr || !facts->is_new) return;
  hits_ += pages;
  lru_hits_ += pages;
}

void ReferenceReuse::UseRuns(const std::vector<Run>& runs,
                             RequestFacts* facts) {
  for (const auto& [node, pages, depth, is_ghost] : runs) {
    ReuseOfNode& of = node->reuse;
    if (!IsKnown(*node)) {
      Meet(*node, pages, facts);
      continue;
    }
    const uint32_t age = tick_ - of.at;
    if (facts != nullptr && facts->is_new && age > 0) {
      CountUse(*node, pages, false);
      of.uses = std::min(255u, of.uses + 1);
      of.interval = IntervalOf(age);
      of.output = LevelOf(facts->output_tokens, {64, 256, 768});
      of.new_tokens = NewTokensOf(facts->new_tokens);
    } else if (facts != nullptr && of.at == facts->tick) {
      SetClass(*node, pages, *facts);
    }
    if (age > 0) tables_.CountReached(ClassOf(of), 0, pages);
    of.shadow_pages = 0;
  }
  for (const Run& run : runs) {
    run.node->reuse.at = tick_;
    ToShadow(*run.node, run.pages);
  }
}

Place ReferenceReuse::Shortened(const Place& place, uint32_t pages) const {
  Place shorter = place;
  shorter.prefix.resize(shorter.prefix.size() - size_t{pages} * page_tokens_);
  return shorter;
}

// Returns the ghost whose first page ends at `first_page`.
ReferenceReuse::Ghost* ReferenceReuse::GhostFrom(const Place& first_page) {
  for (Ghost& ghost : ghosts_) {
    if (ghost.pages > 0 &&
        Shortened(ghost.end, ghost.pages - 1) == first_page) {
      return &ghost;
    }
  }
  return nullptr;
}

void ReferenceReuse::DropGhost(Ghost& ghost) {
  ghost.pages = 0;
  while (!ghosts_.empty() && ghosts_.front().pages == 0) ghosts_.pop_front();
}

// Forgets a ghost. The pages of the ghost that the shadow holds count as if LRU
// had hit them.
void ReferenceReuse::ForgetGhost(Ghost& ghost) {
  gain_ -= ghost.node.reuse.shadow_pages;
  DropGhost(ghost);
}

void ReferenceReuse::MakeRoomForGhost(uint32_t pages) {
  const uint64_t most = std::min<uint64_t>(uint64_t{16} * capacity_, 1 << 22);
  while (!ghosts_.empty()) {
    uint64_t room = ghosts_.front().pages;
    for (size_t i = 1; i < ghosts_.size(); ++i) room += ghosts_[i].room;
    if (ghosts_.size() < std::min<uint64_t>(most, 65'536) &&
        room + pages <= most) {
      return;
    }
    ForgetGhost(ghosts_.front());
  }
}

bool ReferenceReuse::IsInTurn(const Place& place,
                              const ReferenceIndex::Filter& of_class) const {
  std::optional<std::tuple<uint64_t, size_t>> first;
  bool is_first = false;
  for (const ReferenceIndex::NodeRun& run : index_->NodeRuns()) {
    if (!IsKnown(*run.node) || !of_class(run.end.ns) ||
        index_->PathTo(run.end).back()->locks > 0) {
      continue;
    }
    const std::tuple turn(
        run.node->last_access,
        std::numeric_limits<size_t>::max() - run.end.prefix.size());
    if (first.has_value() && *first < turn) continue;
    first = turn;
    is_first = run.end == place;
  }
  return is_first;
}

void ReferenceReuse::KeepInShadow(const Place& place, uint32_t pages,
                                  uint32_t kept) {
  if (kept == 0) return;
  uint32_t& in_shadow = index_->PathTo(Shortened(place, pages - kept))
                            .back()
                            ->node->reuse.shadow_pages;
  in_shadow = std::min(in_shadow, kept);
}

void ReferenceReuse::Evicted(const Place& place, const Node& node,
                             uint32_t pages, uint32_t kept, bool is_in_turn) {
  if (!IsKnown(node)) return;
  KeepInShadow(place, pages, kept);
  Ghost* const known = GhostFrom(Shortened(place, pages - kept - 1));
  if (known != nullptr) ForgetGhost(*known);
  MakeRoomForGhost(pages - kept);
  Ghost ghost{place, pages - kept, pages - kept, node};
  uint32_t& in_shadow = ghost.node.reuse.shadow_pages;
  in_shadow -= std::min(in_shadow, kept);
  if (is_in_turn) in_turn_ += in_shadow;
  ghosts_.push_back(ghost);
}

void ReferenceReuse::Flushed(const Place& place, const Node& node,
                             uint32_t pages, uint32_t kept) {
  if (IsKnown(node)) KeepInShadow(place, pages, kept);
}

double ReferenceReuse::DebtLimit() const {
  return std::max(0.0, static_cast<double>(gain_) +
                           0.0013 * static_cast<double>(requested_));
}

uint64_t ReferenceReuse::Debt() const {
  uint64_t debt = 0;
  for (const Ghost& ghost : ghosts_) {
    if (ghost.pages > 0) debt += ghost.node.reuse.shadow_pages;
  }
  return debt;
}

bool ReferenceReuse::MayOwe() const {
  return static_cast<double>(Debt()) - static_cast<double>(in_turn_) <
         DebtLimit();
}

std::optional<ReferenceReuse::Victim> ReferenceReuse::NextVictim(
    const ReferenceIndex::Filter& of_class) const {
  std::optional<Victim> least;  // of the leaves that may be evicted
  std::optional<Victim> lru;
  bool is_any_unknown = false;
  const bool may_owe = MayOwe();
  for (const auto& [place, node] : index_->UnlockedLeaves(of_class)) {
    const bool is_known = IsKnown(*node);
    is_any_unknown |= !is_known;
    const Victim leaf{
        place, is_known ? tables_.Index(ClassOf(node->reuse), BinOf(*node)) : 0,
        node->last_access, is_known && node->reuse.shadow_pages > 0};
    if (!lru || leaf.last_access < lru->last_access) lru = leaf;
    if (leaf.is_in_shadow && !may_owe) continue;
    if (!least || std::tuple(leaf.index, leaf.last_access) <
                      std::tuple(least->index, least->last_access)) {
      least = leaf;
    }
  }
  if (!lru.has_value()) return std::nullopt;
  if (is_any_unknown || tick_ - first_tick_ < warmup_ticks_) {
    lru->index = 0;
    return lru;
  }
  if (least.has_value() && least->index < 0.7f * lru->index) return least;
  if (lru->is_in_shadow && !may_owe) {
    lru->index = std::numeric_limits<float>::infinity();
  }
  return lru;
}

ReuseStats ReferenceReuse::Stats() const {
  ReuseStats stats{.requested_pages = requested_,
                   .hit_pages = hits_,
                   .lru_hit_pages = lru_hits_,
                   .gained_pages = gain_,
                   .debt_pages = Debt(),
                   .debt_limit_pages = static_cast<uint64_t>(DebtLimit()),
                   .ghost_hit_pages = ghost_hits_};
  for (const Ghost& ghost : ghosts_) stats.ghosts += ghost.pages > 0;
  for (uint32_t level = 0; level < stats.chance_by_uses.size(); ++level) {
    stats.chance_by_uses[level] = tables_.ChanceByUses(level);
  }
  return stats;
}

}  // namespace pando
