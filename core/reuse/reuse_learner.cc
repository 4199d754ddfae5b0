#include "core/reuse/reuse_learner.h"

#include <algorithm>
#include <array>

#include "core/eviction/ghost_list.h"
#include "core/requests/namespace.h"

namespace pando {
namespace {

constexpr uint32_t kMaxUses = 255;

// A prompt that continues another differs from it, if at all, in the last
// tokens. So a run becomes several ghosts, which end so many tokens before its
// end: what comes before the difference is found again.
constexpr std::array<uint32_t, 3> kCutsBeforeEnd = {64, 256, 1024};

}  // namespace

ReuseLearner::ReuseLearner(const Options& options, const Slab<Node>* nodes)
    : options_(options),
      nodes_(nodes),
      ghosts_(options.capacity_pages),
      history_(nodes, &ghosts_, options.quota_classes, options.first_tick),
      shadow_(&history_, options.capacity_pages),
      observers_(options.quota_classes) {}

PageHashes ReuseLearner::PagesOf(const Node& node) const {
  return {node.tokens(options_.page_tokens), options_.page_tokens,
          options_.page_tokens + node.ns->lookahead()};
}

void ReuseLearner::HashPrefix(Node& node) {
  path_.clear();
  Node* n = &node;
  for (; n->run.prefix_hash == 0 && !n->is_root(); n = n->parent) {
    path_.push_back(n);
  }
  if (n->is_root()) n->run.prefix_hash = GhostList::StartOf(*n->ns->key);
  for (; !path_.empty(); path_.pop_back()) HashNode(*path_.back());
}

void ReuseLearner::HashNode(Node& node) {
  const PageHashes pages = PagesOf(node);
  uint64_t hash = node.parent->run.prefix_hash;
  for (uint32_t page = 0; page < node.page_count; ++page) {
    hash = AppendPageHash(hash, pages[page]);
  }
  node.run.prefix_hash = hash;
}

RequestFacts ReuseLearner::BeginRequest(uint32_t prompt_tokens,
                                        uint32_t cached_tokens) {
  history_.Tick([this](RunLink link, uint32_t bin) { Enter(link, bin); });
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

void ReuseLearner::Enter(RunLink link, uint32_t bin) {
  Run& run = history_.At(link);
  tables_.CountReached(run.reuse_class, bin, history_.PagesOf(link));
  Node* const node = IsGhost(link) ? nullptr : nodes_->FindAt(link);
  ReuseObserver* const observer =
      node == nullptr || !node->is_leaf() || node->is_locked()
          ? nullptr
          : observers_[node->ns->quota_class];
  if (observer != nullptr) observer->BeforeAgeing(*node);
  run.bin = static_cast<uint8_t>(bin);
  if (observer != nullptr) observer->AfterAgeing(*node);
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

void ReuseLearner::HashPagesOf(const Node& leaf) {
  hashes_.resize(leaf.page_count);
  const PageHashes pages = PagesOf(leaf);
  HashPrefix(*leaf.parent);
  uint64_t hash = leaf.parent->run.prefix_hash;
  for (uint32_t page = 0; page < leaf.page_count; ++page) {
    hash = AppendPageHash(hash, pages[page]);
    hashes_[page] = hash;
  }
}

void ReuseLearner::TakeGhosts(const Node& leaf, RequestFacts* request) {
  uint32_t begin = 0;
  while (begin < leaf.page_count) {
    const std::optional<uint32_t> slot = ghosts_.Find(hashes_[begin]);
    if (!slot.has_value()) break;
    const uint32_t pages = ghosts_.pages(*slot);
    const Run& run = ghosts_.run(*slot);
    if (begin + pages > leaf.page_count ||
        hashes_[begin + pages - 1] != run.prefix_hash) {
      break;
    }
    CountUse(GhostLink(*slot), pages);
    const uint32_t interval = IntervalLevel(history_.tick() - run.at);
    const uint32_t uses = std::min(kMaxUses, run.uses + 1u);
    if (!parts_.empty() && parts_.back().uses == uses &&
        parts_.back().interval == interval) {
      parts_.back().pages += pages;
    } else {
      parts_.push_back({pages, uses, interval});
    }
    DropGhost(*slot);
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
  HashPagesOf(leaf);
  parts_.clear();
  TakeGhosts(leaf, request);
  leaf.run = Run{.prefix_hash = hashes_.back()};
  leaf.run.uses = static_cast<uint8_t>(parts_.back().uses);
  leaf.run.reuse_class = static_cast<uint16_t>(ClassOf(parts_.back(), request));
  new_pages_ += leaf.page_count;
  Append(LinkOf(leaf), leaf.page_count);
  return parts_;
}

void ReuseLearner::SetPart(Node& node, const Part& part,
                           const RequestFacts* request) {
  node.run.uses = static_cast<uint8_t>(part.uses);
  Reclassify(node, ClassOf(part, request));
}

// It counts as used as often as it was inserted.
void ReuseLearner::Meet(Node& node, const RequestFacts* request) {
  HashPrefix(node);
  const uint32_t uses = std::clamp(node.hit_count, uint32_t{1}, kMaxUses);
  node.run.uses = static_cast<uint8_t>(uses);
  node.run.reuse_class = static_cast<uint16_t>(
      ClassOf({node.page_count, uses, /*interval=*/0}, request));
  tables_.CountReached(node.run.reuse_class, 0, node.page_count);
  if (request != nullptr && request->is_new) {
    shadow_.CountCommonUse(node.page_count);
  }
}

// A request's own pages are those that it used last.
void ReuseLearner::BeginUse(Node& node, const RequestFacts* request) {
  if (!Knows(node)) {
    Meet(node, request);
    return;
  }
  const RunLink link = LinkOf(node);
  Run& run = node.run;
  const uint32_t tick = history_.tick();
  bool reaches_first_bin = run.bin > 0;
  if (request != nullptr && request->is_new && run.at < tick) {
    CountUse(link, node.page_count);
    run.uses = static_cast<uint8_t>(std::min(kMaxUses, run.uses + 1u));
    run.reuse_class = static_cast<uint16_t>(ClassOf(
        {node.page_count, run.uses, IntervalLevel(tick - run.at)}, request));
    reaches_first_bin = true;
  } else if (request != nullptr && run.at == request->tick) {
    const auto of = ReuseClass::FromNumber(run.reuse_class);
    Reclassify(node,
               ClassOf({node.page_count, run.uses, of.interval}, request));
  }
  if (reaches_first_bin) {
    tables_.CountReached(run.reuse_class, 0, node.page_count);
  }
  shadow_.Leaves(link, node.page_count);
  history_.Remove(link);
}

void ReuseLearner::EndUse(Node& node) {
  history_.Append(LinkOf(node));
  shadow_.Appended(LinkOf(node));
}

void ReuseLearner::NoteUsed(RequestFacts* request) const {
  if (request == nullptr) return;
  request->tick = history_.tick();
  request->is_new = false;
}

void ReuseLearner::Split(Node& front, Node& back) {
  if (!Knows(back)) return;
  const uint64_t end_hash = back.run.prefix_hash;
  front.run = back.run;
  front.run.prefix_hash = end_hash;
  if (back.page_count <= front.page_count) {
    const PageHashes pages = PagesOf(back);
    for (uint32_t page = back.page_count; page-- > 0;) {
      front.run.prefix_hash =
          RemovePageHash(front.run.prefix_hash, pages[page]);
    }
  } else {
    HashNode(front);
  }
  history_.PutAfter(LinkOf(front), LinkOf(back));
  shadow_.Divided(LinkOf(front), front.page_count, LinkOf(back),
                  /*was_evicted=*/false);
}

void ReuseLearner::Trim(Node& leaf, uint32_t kept, bool is_evicted) {
  if (!Knows(leaf)) {
    leaf.run.prefix_hash = 0;
    return;
  }
  const uint64_t kept_hash = CutIntoPieces(leaf, kept);
  if (is_evicted) {
    AddGhosts(leaf, leaf.page_count - kept);
  } else {
    shadow_.Shrinks(LinkOf(leaf), kept);
  }
  leaf.run.prefix_hash = kept_hash;
  if (kept > 0) return;
  shadow_.Leaves(LinkOf(leaf), 0);
  history_.Remove(LinkOf(leaf));
}

// What is evicted whole begins where its parent ends, which needs no look at
// its pages.
uint64_t ReuseLearner::CutIntoPieces(const Node& leaf, uint32_t kept) {
  pieces_.clear();
  const PageHashes pages = PagesOf(leaf);
  uint64_t hash = leaf.run.prefix_hash;
  uint32_t page = leaf.page_count;
  for (size_t cut = 0; page > kept; ++cut) {
    uint32_t first = kept;
    if (cut < kCutsBeforeEnd.size()) {
      const uint32_t distance =
          PagesFor(kCutsBeforeEnd[cut], options_.page_tokens);
      first =
          std::max(kept, leaf.page_count - std::min(leaf.page_count, distance));
    }
    if (first == page) continue;
    Piece piece{.first_page = first, .first_page_hash = 0, .end_hash = hash};
    if (first == 0) {
      hash = leaf.parent->run.prefix_hash;
      piece.first_page_hash = AppendPageHash(hash, pages[0]);
      page = 0;
    }
    while (page > first) {
      piece.first_page_hash = hash;
      hash = RemovePageHash(hash, pages[--page]);
    }
    pieces_.push_back(piece);
  }
  return hash;
}

// All room is made before the run is cut, so that whatever goes, the shadow
// knows how many pages each run has.
void ReuseLearner::AddGhosts(Node& leaf, uint32_t pages) {
  for (const Piece& piece : pieces_) {
    const std::optional<uint32_t> known = ghosts_.Find(piece.first_page_hash);
    if (known.has_value()) DropGhost(*known);
  }
  const auto runs = static_cast<uint32_t>(pieces_.size());
  while (const std::optional<uint32_t> slot = ghosts_.InTheWay(runs, pages)) {
    DropGhost(*slot);
  }
  uint32_t end = leaf.page_count;
  for (const Piece& piece : pieces_) {
    Run run = leaf.run;
    run.prefix_hash = piece.end_hash;
    const RunLink ghost = GhostLink(
        ghosts_.Add(piece.first_page_hash, run, end - piece.first_page));
    history_.Replace(LinkOf(leaf), ghost);
    history_.PutAfter(LinkOf(leaf), ghost);
    shadow_.Divided(LinkOf(leaf), piece.first_page, ghost,
                    /*was_evicted=*/true);
    end = piece.first_page;
  }
}

void ReuseLearner::DropGhost(uint32_t slot) {
  shadow_.Leaves(GhostLink(slot), ghosts_.pages(slot));
  history_.Remove(GhostLink(slot));
  ghosts_.Remove(slot);
}

void ReuseLearner::Reclassify(Node& node, uint32_t reuse_class) {
  if (node.run.reuse_class == reuse_class) return;
  tables_.Reclassify(node.run.reuse_class, reuse_class, node.run.bin,
                     node.page_count);
  node.run.reuse_class = static_cast<uint16_t>(reuse_class);
}

void ReuseLearner::CountUse(RunLink link, uint32_t pages) {
  const Run& run = history_.At(link);
  tables_.CountReused(run.reuse_class, run.bin, pages);
  shadow_.CountUse(link, pages);
}

uint32_t ReuseLearner::ticks() const {
  return history_.tick() - options_.first_tick;
}

void ReuseLearner::Append(RunLink link, uint32_t pages) {
  history_.Append(link);
  shadow_.Appended(link);
  tables_.CountReached(history_.At(link).reuse_class, 0, pages);
}

}  // namespace pando
