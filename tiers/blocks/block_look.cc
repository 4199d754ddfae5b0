#include "tiers/blocks/block_look.h"

#include <algorithm>
#include <utility>

#include "tiers/blocks/wanted_blocks.h"

namespace pando {
namespace {

bool IsMissing(BlockPlace answer) {
  return answer == kMissingBlock || answer == kNotLookedAt;
}

}  // namespace

bool BlockLook::Step() {
  if (!keys_.has_value() && !BeginKeys()) {
    if (!used_.empty()) {
      parts_.stores->Use(std::exchange(used_, {}), /*stores=*/true);
    }
    return true;
  }
  if (keys_->next_key < keys_->answers.size()) {
    LookAtSome();
  } else if (keys_->next_wanted < keys_->wanted.size()) {
    LoadSome();
  }
  const bool has_looked = keys_->next_key == keys_->answers.size();
  if (has_looked && keys_->next_wanted == keys_->wanted.size()) EndKeys();
  return false;
}

// If a kind is not known, this ends the work: its keys, and all that follow,
// are not looked for.
bool BlockLook::BeginKeys() {
  if (next_ == asked_.keys.size()) return false;
  std::shared_ptr<KnownKind> kind = parts_.kept->Use(asked_keys().kind);
  if (kind == nullptr) {
    next_ = asked_.keys.size();
    return false;
  }
  const size_t count = asked_keys().keys.size() / kind->kind.key_bytes;
  keys_ = {.kind = std::move(kind),
           .answers = places_.first(count),
           .used = {.kind = asked_keys().kind, .keys = {}},
           .kept = std::vector<bool>(count),
           .wanted = {}};
  places_ = places_.subspan(count);
  return true;
}

void BlockLook::LookAtSome() {
  Keys& keys = *keys_;
  const size_t first = keys.next_key;
  const size_t end =
      std::min(first + KeptBlocks::kMostNames, keys.answers.size());
  std::vector<size_t> missing;
  std::vector<BlockName> names;
  for (size_t i = first; i < end; ++i) {
    const std::string_view key = keys.kind->KeyOf(asked_keys().keys, i);
    if (asked_.uses && IsPlace(keys.answers[i])) keys.used.keys.append(key);
    if (!asked_.looks || !IsMissing(keys.answers[i])) continue;
    missing.push_back(i);
    names.push_back(keys.kind->NameOf(key));
  }
  const std::vector<bool> have = parts_.kept->Have(*keys.kind, names);
  for (size_t i = 0; i < missing.size(); ++i) {
    keys.kept[missing[i]] = have[i];
    found_ += have[i] ? 1 : 0;
  }
  keys.next_key = end;
  if (end == keys.answers.size() && asked_.loads) {
    keys.wanted = WantedBlocks(asked_keys(), keys.answers, keys.kept);
  }
}

void BlockLook::LoadSome() {
  Keys& keys = *keys_;
  const auto some = std::span(keys.wanted).subspan(keys.next_wanted);
  const auto wanted = some.first(std::min(some.size(), KeptBlocks::kMostNames));
  const std::vector<bool> are_loading =
      parts_.loads->Begin(asked_.session, keys.kind, asked_keys(), wanted);
  for (size_t i = 0; i < wanted.size(); ++i) {
    BlockPlace& answer = keys.answers[wanted[i]];
    if (are_loading[i] && answer == kMissingBlock) answer = kPendingBlock;
  }
  keys.next_wanted += wanted.size();
}

void BlockLook::EndKeys() {
  if (!keys_->used.keys.empty()) used_.push_back(std::move(keys_->used));
  keys_.reset();
  ++next_;
}

}  // namespace pando
