#include "core/reuse/reuse_learner.h"

#include <algorithm>
#include <span>

#include "core/eviction/ghost_list.h"
#include "core/requests/namespace.h"

namespace pando {
namespace {

constexpr uint32_t kMaxUses = 255;

static_assert(kReuseClasses <= 1 << 11);  // Run::reuse_class

// The print of the last page of a node; 0 if it is not known.
PagePrint LastPrintOf(const Node& node) {
  const std::span<const PagePrint> prints = node.prints();
  return prints.empty() ? 0 : prints.back();
}

}  // namespace

ReuseLearner::ReuseLearner(const Options& options, const Slab<Node>* nodes)
    : options_(options),
      nodes_(nodes),
      ghosts_(options.capacity_pages),
      history_(nodes, &runs_, &ghosts_, options.quota_classes,
               options.first_tick),
      shadow_(&history_, options.capacity_pages),
      observers_(options.quota_classes) {}

void ReuseLearner::MakePrints(Node& node) {
  path_.clear();
  for (Node* n = &node; !n->is_root() && LastPrintOf(*n) == 0; n = n->parent) {
    path_.push_back(n);
  }
  for (; !path_.empty(); path_.pop_back()) MakePrintsOf(*path_.back());
}

void ReuseLearner::MakePrintsOf(Node& node) const {
  const size_t spelled_tokens = options_.page_tokens + node.ns->lookahead();
  const PagePrint last =
      node.parent->is_root()
          ? static_cast<PagePrint>(GhostList::StartOf(*node.ns->key))
          : LastPrintOf(*node.parent);
  const std::span prints(node.segment.MakePrints() + node.first_page,
                         node.page_count);
  const Token* const tokens = node.tokens(options_.page_tokens);
  if (spelled_tokens == 16) {
    FillPrints<16>(last, tokens, options_.page_tokens, 16, prints);
  } else {
    FillPrints<std::dynamic_extent>(last, tokens, options_.page_tokens,
                                    spelled_tokens, prints);
  }
}

RequestFacts ReuseLearner::BeginRequest(uint32_t prompt_tokens,
                                        uint32_t cached_tokens) {
  history_.Tick([this](RunLink link, Run& run, uint32_t bin) {
    tables_.CountAged(run.reuse_class, bin, run.pages);
    ReuseObserver* const observer = run.is_listed ? ObserverOf(link) : nullptr;
    if (observer != nullptr) {
      observer->Ages(*nodes_->FindAt(link), run, bin);
    } else {
      run.bin = static_cast<uint8_t>(bin);
    }
  });
  const uint32_t tick = history_.tick();
  shadow_.CountRequest(prompt_tokens / options_.page_tokens);
  const auto pages_a_request = std::max(
      1.0f, static_cast<float>(new_pages_) / static_cast<float>(ticks()));
  const ReuseTables::Refitted refitted =
      tables_.FitStep(ticks(), pages_a_request);
  for (uint32_t c = refitted.first; c < refitted.end; ++c) {
    if (!tables_.IsKnown(c)) continue;
    for (ReuseObserver* observer : observers_) {
      if (observer != nullptr) observer->IndexChanged(c);
    }
  }
  return {.tick = tick,
          .is_new = true,
          .prompt_tokens = prompt_tokens,
          .new_tokens = prompt_tokens - std::min(prompt_tokens, cached_tokens)};
}

ReuseObserver* ReuseLearner::ObserverOf(RunLink link) const {
  if (!history_.At(link).is_listed) return nullptr;
  return observers_[nodes_->FindAt(link)->ns->quota_class];
}

void ReuseLearner::NoteLeftShadow(RunLink link) {
  ReuseObserver* const observer = ObserverOf(link);
  if (observer != nullptr) observer->LeftShadow(*nodes_->FindAt(link));
}

uint32_t ReuseLearner::ClassOf(const Part& part,
                               const RequestFacts* request) const {
  ReuseClass of{.uses = UsesLevel(part.uses), .interval = part.interval};
  if (request != nullptr) {
    of.output = OutputLevel(request->output_tokens);
    of.new_tokens = NewTokensLevel(request->new_tokens);
  }
  return of.number();
}

void ReuseLearner::TakeGhosts(const Node& leaf, RequestFacts* request) {
  const std::span<const PagePrint> prints = leaf.prints();
  uint32_t begin = 0;
  while (begin < leaf.page_count) {
    const std::optional<uint32_t> slot = ghosts_.Find(prints[begin]);
    if (!slot.has_value()) break;
    const uint32_t pages = ghosts_.CommonPages(*slot, prints.subspan(begin));
    const Run& run = ghosts_.run(*slot);
    CountUse(GhostLink(*slot), pages);
    const uint32_t interval = IntervalLevel(history_.tick() - run.at);
    const uint32_t uses = std::min(kMaxUses, run.uses + 1u);
    if (!parts_.empty() && parts_.back().uses == uses &&
        parts_.back().interval == interval) {
      parts_.back().pages += pages;
    } else {
      parts_.push_back({pages, uses, interval});
    }
    CutGhost(*slot, pages);
    begin += pages;
  }
  ghost_hits_ += begin;
  if (request != nullptr) {
    const uint32_t known = begin * options_.page_tokens;
    request->new_tokens -= std::min(request->new_tokens, known);
  }
  if (begin < leaf.page_count) {
    parts_.push_back({leaf.page_count - begin, 1, 0});
  }
}

const std::vector<ReuseLearner::Part>& ReuseLearner::AddLeaf(
    Node& leaf, RequestFacts* request) {
  MakePrints(leaf);
  parts_.clear();
  TakeGhosts(leaf, request);
  Run& run = runs_.Make(leaf);
  run = {.pages = leaf.page_count,
         .reuse_class = static_cast<uint16_t>(ClassOf(parts_.back(), request)),
         .uses = static_cast<uint8_t>(parts_.back().uses)};
  new_pages_ += leaf.page_count;
  AppendLeaf(leaf);
  tables_.CountReached(run.reuse_class, 0, run.pages);
  return parts_;
}

// If the leaf's path is the newest, the leaf is put where its first use, which
// follows, would leave it.
void ReuseLearner::AppendLeaf(const Node& leaf) {
  const Node& parent = *leaf.parent;
  const bool fits = leaf.end_pages() <= options_.capacity_pages;
  if (parent.is_root() || !fits || !AreNewest(parent, leaf.ns->root)) {
    Append(LinkOf(leaf));
    return;
  }
  history_.PutBefore(LinkOf(leaf), LinkOf(parent));
  EnterShadow(LinkOf(leaf));
}

void ReuseLearner::SetPart(const Node& node, const Part& part,
                           const RequestFacts* request) {
  Run& run = runs_.At(LinkOf(node));
  run.uses = static_cast<uint8_t>(part.uses);
  Reclassify(run, ClassOf(part, request));
}

// The node counts as used once for each insert of it.
void ReuseLearner::Meet(Node& node, const RequestFacts* request) {
  MakePrints(node);
  const uint32_t uses = std::clamp(node.hit_count, uint32_t{1}, kMaxUses);
  Run& run = runs_.Make(node);
  run = {.pages = node.page_count,
         .reuse_class = static_cast<uint16_t>(
             ClassOf({node.page_count, uses, /*interval=*/0}, request)),
         .uses = static_cast<uint8_t>(uses)};
  tables_.CountReached(run.reuse_class, 0, run.pages);
  if (request != nullptr && request->is_new) {
    shadow_.CountCommonUse(node.page_count);
  }
}

// All nodes leave the history first, so that LRU would find them all, and then
// come back, the deepest first.
void ReuseLearner::Use(Node& node, const Node* end,
                       const RequestFacts* request) {
  if (AreNewest(node, end)) {
    for (const Node* n = &node; request != nullptr && n != end; n = n->parent) {
      UpdateClass(*n, request);
    }
    return;
  }
  for (Node* n = &node; n != end; n = n->parent) BeginUse(*n, request);
  for (Node* n = &node; n != end; n = n->parent) Append(LinkOf(*n));
}

// Most requests use their path three times in a tick: when they are admitted,
// when they insert, and when they unlock. OldestUnlocked may have passed over
// the nodes while they were locked; then they must become the newest anew.
bool ReuseLearner::AreNewest(const Node& node, const Node* end) const {
  if (!Knows(node) || !shadow_.HoldsNotLast(LinkOf(node))) return false;
  if (RunOf(node).at != history_.tick()) return false;
  const RunLink passed = history_.OldestUnlockedFrom(node.ns->quota_class);
  if (passed == kNoRun) return false;
  for (const Node* n = &node; n != end; n = n->parent) {
    const RunLink newer = n->parent == end ? kNoRun : LinkOf(*n->parent);
    if (RunOf(*n).newer != newer || LinkOf(*n) == passed) return false;
  }
  return true;
}

// A later use by the same request counts no reuse; it only updates the class of
// pages that this request used last.
void ReuseLearner::BeginUse(Node& node, const RequestFacts* request) {
  if (!Knows(node)) {
    Meet(node, request);
    return;
  }
  const RunLink link = LinkOf(node);
  Run& run = history_.At(link);
  const uint32_t tick = history_.tick();
  bool reaches_first_bin = run.bin > 0;
  if (request != nullptr && request->is_new && run.at < tick) {
    CountUse(link, run.pages);
    run.uses = static_cast<uint8_t>(std::min(kMaxUses, run.uses + 1u));
    run.reuse_class = static_cast<uint16_t>(
        ClassOf({run.pages, run.uses, IntervalLevel(tick - run.at)}, request));
    reaches_first_bin = true;
  } else if (request != nullptr) {
    UpdateClass(node, request);
  }
  if (reaches_first_bin) tables_.CountReached(run.reuse_class, 0, run.pages);
  shadow_.Leaves(link, run.pages);
  history_.Remove(link);
}

void ReuseLearner::UpdateClass(const Node& node, const RequestFacts* request) {
  Run& run = runs_.At(LinkOf(node));
  if (run.at != request->tick) return;
  const auto of = ReuseClass::FromNumber(run.reuse_class);
  Reclassify(run, ClassOf({run.pages, run.uses, of.interval}, request));
}

void ReuseLearner::NoteUsed(RequestFacts* request) const {
  if (request == nullptr) return;
  request->tick = history_.tick();
  request->is_new = false;
}

void ReuseLearner::Split(const Node& front, const Node& back) {
  if (!Knows(back)) return;
  Run& front_run = runs_.Make(front);
  Run& back_run = runs_.At(LinkOf(back));
  front_run = back_run;
  front_run.is_listed = 0;  // it is no leaf
  front_run.pages = front.page_count;
  back_run.pages = back.page_count;
  history_.PutAfter(LinkOf(front), LinkOf(back));
  shadow_.Divided(LinkOf(front), front.page_count, LinkOf(back));
  if (!back_run.is_in_shadow) NoteLeftShadow(LinkOf(back));
}

void ReuseLearner::Trim(const Node& leaf, uint32_t kept, bool is_evicted) {
  if (!Knows(leaf)) return;
  Run& run = runs_.At(LinkOf(leaf));
  if (is_evicted) {
    AddGhost(leaf, kept);
  } else {
    shadow_.Shrinks(LinkOf(leaf), kept);
  }
  if (kept > 0) {
    run.pages = kept;
    return;
  }
  shadow_.Leaves(LinkOf(leaf), 0);
  history_.Remove(LinkOf(leaf));
  run = Run();
}

// All room is made before the run is cut. So whichever ghost is forgotten, the
// shadow still knows how many pages each run has.
void ReuseLearner::AddGhost(const Node& leaf, uint32_t kept) {
  const std::span<const PagePrint> prints = leaf.prints().subspan(kept);
  if (const auto known = ghosts_.Find(prints.front())) ForgetGhost(*known);
  const auto pages = static_cast<uint32_t>(prints.size());
  while (const auto slot = ghosts_.InTheWay(pages)) ForgetGhost(*slot);
  const bool is_in_turn = OldestUnlocked(leaf.ns->quota_class) == &leaf;
  const RunLink ghost = GhostLink(ghosts_.Add(prints, RunOf(leaf)));
  history_.Replace(LinkOf(leaf), ghost);
  history_.PutAfter(LinkOf(leaf), ghost);
  shadow_.Divided(LinkOf(leaf), kept, ghost);
  shadow_.Evicted(ghost, is_in_turn);
}

// Takes pages that were used again off the front of a ghost.
void ReuseLearner::CutGhost(uint32_t slot, uint32_t pages) {
  if (pages == ghosts_.pages(slot)) return DropGhost(slot);
  const auto other = ghosts_.Find(ghosts_.print(slot, pages));
  if (other.has_value() && *other != slot) ForgetGhost(*other);
  shadow_.FrontLeaves(GhostLink(slot), pages);
  ghosts_.CutFront(slot, pages);
}

void ReuseLearner::ForgetGhost(uint32_t slot) {
  shadow_.Forgets(GhostLink(slot));
  DropGhost(slot);
}

void ReuseLearner::DropGhost(uint32_t slot) {
  shadow_.Leaves(GhostLink(slot), ghosts_.pages(slot));
  history_.Remove(GhostLink(slot));
  ghosts_.Remove(slot);
}

void ReuseLearner::Reclassify(Run& run, uint32_t reuse_class) {
  if (run.reuse_class == reuse_class) return;
  tables_.Reclassify(run.reuse_class, reuse_class, run.bin, run.pages);
  run.reuse_class = static_cast<uint16_t>(reuse_class);
}

void ReuseLearner::CountUse(RunLink link, uint32_t pages) {
  const Run& run = history_.At(link);
  tables_.CountReused(run.reuse_class, run.bin, pages);
  shadow_.CountUse(link, pages);
}

uint32_t ReuseLearner::ticks() const {
  return history_.tick() - options_.first_tick;
}

void ReuseLearner::Append(RunLink link) {
  history_.Append(link);
  EnterShadow(link);
}

void ReuseLearner::EnterShadow(RunLink link) {
  shadow_.Appended(link, [this](RunLink out) { NoteLeftShadow(out); });
}

}  // namespace pando
