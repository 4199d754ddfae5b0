#include "events/routers/tier_blocks.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace pando {
namespace {

// The most tokens of blocks that one turn, of some milliseconds, reports; a
// single block may have more. This is more than a tier stores meanwhile. It is
// little enough that subscribers miss no frames, and that frames are still in
// the history when a router asks for them.
constexpr size_t kTokensPerTurn = 1'024;

}  // namespace

TierBlocks::TierBlocks(KvMedium medium, TierChanges* tier,
                       const PublishedBlocks* rules)
    : medium_(medium), tier_(tier), rules_(rules), runs_(medium) {
  tier_->FollowChanges();
}

std::span<const BlockId> TierBlocks::TakeChanges() {
  gone_.clear();
  for (TierChange& change : tier_->TakeChanges()) {
    if (change.stored.has_value()) {
      Add(IdOf(change.hash), *std::move(change.stored));
    } else {
      Remove(IdOf(change.hash));
    }
  }
  return gone_;
}

void TierBlocks::Add(BlockId id, TierChange::Page page) {
  if (!rules_->Includes(*page.ns)) return;
  const auto [it, is_new] =
      pages_.try_emplace(id, Page{.before = IdOf(page.before),
                                  .ordinal = page.ordinal,
                                  .ns = std::move(page.ns),
                                  .tokens = std::move(page.tokens)});
  if (!is_new) return;  // another page whose hash begins with the same bytes
  if (!BeginsBlock(it->second)) next_[it->second.before].push_back(id);
  if (!is_telling_) return;
  ForEachEnd(id, [this](BlockId end, Page&) { untold_.push_back(end); });
}

void TierBlocks::Remove(BlockId id) {
  const auto it = pages_.find(id);
  if (it == pages_.end()) return;
  ForEachEnd(id, [this](BlockId end, Page& page) {
    if (std::exchange(page.is_told, false) && is_telling_) gone_.push_back(end);
  });
  if (!BeginsBlock(it->second)) {
    const auto siblings = next_.find(it->second.before);
    std::erase(siblings->second, id);
    if (siblings->second.empty()) next_.erase(siblings);
  }
  pages_.erase(it);
}

void TierBlocks::ForEachEnd(BlockId id,
                            const std::function<void(BlockId, Page&)>& visit) {
  std::vector<BlockId> waiting = {id};
  while (!waiting.empty()) {
    const BlockId next = waiting.back();
    waiting.pop_back();
    Page& page = pages_.at(next);
    if (EndsBlock(page)) {
      visit(next, page);
      continue;
    }
    const auto following = next_.find(next);
    if (following == next_.end()) continue;
    waiting.insert(waiting.end(), following->second.begin(),
                   following->second.end());
  }
}

bool TierBlocks::FindBlock(BlockId last) {
  block_.clear();
  BlockId id = last;
  while (true) {
    const auto it = pages_.find(id);
    if (it == pages_.end()) return false;
    const Page& page = it->second;
    block_.push_back(page.tokens);
    id = page.before;
    if (!BeginsBlock(page)) continue;
    parent_.reset();
    if (page.ordinal > 1) parent_ = id;
    std::ranges::reverse(block_);
    return true;
  }
}

void TierBlocks::TellSome(const BlockRuns::Visit& visit) {
  for (size_t tokens = 0; !untold_.empty() && tokens < kTokensPerTurn;) {
    const BlockId id = untold_.front();
    untold_.pop_front();
    const auto it = pages_.find(id);
    if (it == pages_.end() || it->second.is_told || !FindBlock(id)) continue;
    it->second.is_told = true;
    runs_.Add(id, parent_, *it->second.ns, block_, visit);
    tokens += block_.size() * block_.front().size();
  }
  runs_.Flush(visit);
}

void TierBlocks::TellAllAnew() {
  is_telling_ = true;
  untold_.clear();
  for (auto& [_, page] : pages_) page.is_told = page.is_listed = false;
  std::vector<BlockId> path;  // from an end of a prompt to what is listed
  for (const auto& [id, page] : pages_) {
    if (!EndsBlock(page)) continue;
    path.clear();
    for (std::optional<BlockId> at = id; at.has_value();) {
      const auto it = pages_.find(*at);
      if (it == pages_.end() || it->second.is_listed) break;
      it->second.is_listed = true;
      path.push_back(*at);
      at = FindBlock(*at) ? parent_ : std::nullopt;
    }
    untold_.insert(untold_.end(), path.rbegin(), path.rend());
  }
}

void TierBlocks::StopTelling() {
  is_telling_ = false;
  untold_.clear();
}

}  // namespace pando
