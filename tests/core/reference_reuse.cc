#include "tests/core/reference_reuse.h"

#include <algorithm>
#include <cmath>
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

// All that are known, the least recently used first.
std::vector<ReferenceReuse::Run> ReferenceReuse::Runs() {
  std::vector<Run> runs;
  for (const ReferenceIndex::NodeRun& run : index_->NodeRuns()) {
    if (!IsKnown(*run.node)) continue;
    runs.push_back({run.node, run.pages, run.end.prefix.size(), false});
  }
  for (std::optional<Ghost>& ghost : ghosts_) {
    if (!ghost.has_value()) continue;
    runs.push_back(
        {&ghost->node, ghost->pages, ghost->end.prefix.size(), true});
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
  lru_hits_ += node.reuse.shadow_pages;
  if (!is_ghost) hits_ += pages;
  gain_ += int64_t{is_ghost ? 0 : pages} - node.reuse.shadow_pages;
  gain_ = std::min<int64_t>(gain_, capacity_);
}

// Moves what reached the bins of the node to the class that its request has by
// now.
void ReferenceReuse::SetClass(Node& node, uint32_t pages,
                              const RequestFacts& facts) {
  const uint32_t from = ClassOf(node.reuse);
  node.reuse.output = LevelOf(facts.output_tokens, {64, 256, 768});
  node.reuse.new_tokens = NewTokensOf(facts.new_tokens);
  const uint32_t to = ClassOf(node.reuse);
  if (from != to) tables_.Reclassify(from, to, BinOf(node), pages);
}

// As the newest. What it takes others lose, the oldest first.
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
  const auto shortened = [&](uint32_t by) {
    Place at = place;
    at.prefix.resize(at.prefix.size() - size_t{by} * page_tokens_);
    return at;
  };
  uint32_t begin = 0;
  while (begin < pages) {
    const auto found = std::ranges::find_if(ghosts_, [&](const auto& ghost) {
      return ghost.has_value() &&
             ghost->first_page == shortened(pages - begin - 1);
    });
    if (found == ghosts_.end()) break;
    const uint32_t end = begin + (*found)->pages;
    if (end > pages || (*found)->end != shortened(pages - end)) break;
    const Node& ghost = (*found)->node;
    CountUse(ghost, end - begin, true);
    const uint32_t interval = IntervalOf(tick_ - ghost.reuse.at);
    const uint32_t uses = std::min(255u, ghost.reuse.uses + 1);
    if (!parts.empty() && parts.back().uses == uses &&
        parts.back().interval == interval) {
      parts.back().end = shortened(pages - end);
    } else {
      parts.push_back({shortened(pages - end), uses, interval});
    }
    DropGhost(*found);
    begin = end;
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
  std::vector<Run> path;  // the deepest first
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

// LRU would have found it, too.
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

void ReferenceReuse::DropGhost(std::optional<Ghost>& ghost) {
  ghost.reset();
  while (!ghosts_.empty() && !ghosts_.front().has_value()) ghosts_.pop_front();
}

// The tail becomes ghosts of its last 64 tokens, of what is up to 256 and 1,024
// tokens before the end, and of the rest.
void ReferenceReuse::Trimmed(const Place& place, const Node& node,
                             uint32_t pages, uint32_t kept, bool is_evicted) {
  if (!IsKnown(node)) return;
  const auto at = [&](uint32_t page) {
    Place shorter = place;
    shorter.prefix.resize(shorter.prefix.size() -
                          size_t{pages - page} * page_tokens_);
    return shorter;
  };
  if (kept > 0) {
    index_->PathTo(at(kept)).back()->node->reuse.shadow_pages =
        std::min(node.reuse.shadow_pages, kept);
  }
  if (!is_evicted) return;
  std::vector<std::pair<uint32_t, uint32_t>> pieces;
  uint32_t end = pages;
  for (const uint32_t tokens : {64u, 256u, 1024u, UINT32_MAX}) {
    uint32_t begin = kept;
    while (begin < pages && uint64_t{pages - begin} * page_tokens_ >=
                                uint64_t{tokens} + page_tokens_) {
      ++begin;
    }
    if (begin >= end) continue;
    pieces.emplace_back(begin, end);
    end = begin;
  }
  for (const auto& [begin, piece_end] : pieces) {
    for (std::optional<Ghost>& ghost : ghosts_) {
      if (!ghost.has_value() || ghost->first_page != at(begin + 1)) continue;
      DropGhost(ghost);
      break;
    }
  }
  const auto held = [&] {
    uint64_t sum = 0;
    for (const auto& ghost : ghosts_) sum += ghost ? ghost->pages : 0;
    return sum;
  };
  const uint64_t most = uint64_t{16} * capacity_;
  while (!ghosts_.empty() &&
         (ghosts_.size() + pieces.size() > std::min<uint64_t>(most, 65'536) ||
          held() + pages - kept > most)) {
    DropGhost(ghosts_.front());
  }
  for (const auto& [begin, piece_end] : pieces) {
    Ghost ghost{at(begin + 1), at(piece_end), piece_end - begin, node};
    const uint32_t shadow = std::min(node.reuse.shadow_pages, piece_end);
    ghost.node.reuse.shadow_pages = shadow - std::min(shadow, begin);
    ghosts_.push_back(ghost);
  }
}

double ReferenceReuse::DebtLimit() const {
  return 8 * std::max(0.0, static_cast<double>(gain_) + 0.05 * capacity_ +
                               0.003 * static_cast<double>(requested_));
}

uint64_t ReferenceReuse::Debt() const {
  uint64_t debt = 0;
  for (const auto& ghost : ghosts_) {
    if (ghost.has_value()) debt += ghost->node.reuse.shadow_pages;
  }
  return debt;
}

bool ReferenceReuse::MustFollowLru() const {
  return tick_ - first_tick_ < warmup_ticks_ ||
         static_cast<double>(Debt()) >= DebtLimit();
}

std::optional<ReferenceReuse::Victim> ReferenceReuse::NextVictim(
    const ReferenceIndex::Filter& of_class) const {
  std::optional<Victim> least;
  std::optional<Victim> lru;
  for (const auto& [place, node] : index_->UnlockedLeaves(of_class)) {
    const float index =
        IsKnown(*node) ? tables_.Index(ClassOf(node->reuse), BinOf(*node)) : -1;
    const Victim leaf{place, index, node->last_access};
    if (!least || std::tuple(leaf.index, leaf.last_access) <
                      std::tuple(least->index, least->last_access)) {
      least = leaf;
    }
    if (!lru || leaf.last_access < lru->last_access) lru = leaf;
  }
  if (!lru.has_value()) return std::nullopt;
  const bool is_any_unknown = least->index < 0;
  if (is_any_unknown || MustFollowLru()) {
    lru->index = 0;
    return lru;
  }
  return least->index < 0.7f * lru->index ? least : lru;
}

ReuseStats ReferenceReuse::Stats() const {
  ReuseStats stats{.requested_pages = requested_,
                   .hit_pages = hits_,
                   .lru_hit_pages = lru_hits_,
                   .gained_pages = gain_,
                   .debt_pages = Debt(),
                   .debt_limit_pages = static_cast<uint64_t>(DebtLimit()),
                   .ghost_hit_pages = ghost_hits_};
  for (const auto& ghost : ghosts_) stats.ghosts += ghost.has_value();
  for (uint32_t level = 0; level < stats.chance_by_uses.size(); ++level) {
    stats.chance_by_uses[level] = tables_.ChanceByUses(level);
  }
  return stats;
}

}  // namespace pando
