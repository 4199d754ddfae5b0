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
    TellUses();
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

void BlockLook::TellUses() {
  if (used_.empty()) return;
  const StoreNote note = {.keys = std::make_shared<std::vector<KeysOfKind>>(
                              std::exchange(used_, {})),
                          .is_use = true};
  if (parts_.shared != nullptr) parts_.shared->Note(note);
  if (parts_.disk != nullptr) parts_.disk->stores().Note(note);
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
           .on_disk = std::vector<bool>(count),
           .shared =
               std::vector<SharedAsks::Known>(count, SharedAsks::Known::kLacks),
           .wanted = {}};
  places_ = places_.subspan(count);
  return true;
}

void BlockLook::LookAtSome() {
  Keys& keys = *keys_;
  const size_t first = keys.next_key;
  const size_t end =
      std::min(first + KeptBlocks::kMostNames, keys.answers.size());
  std::vector<uint32_t> missing;
  std::vector<BlockName> names;
  for (size_t i = first; i < end; ++i) {
    const std::string_view key = keys.kind->KeyOf(asked_keys().keys, i);
    if (asked_.uses && IsPlace(keys.answers[i])) keys.used.keys.append(key);
    if (!asked_.looks || !IsMissing(keys.answers[i])) continue;
    missing.push_back(static_cast<uint32_t>(i));
    names.push_back(keys.kind->NameOf(key));
  }
  LookForMissing(missing, names);
  keys.next_key = end;
  if (end == keys.answers.size() && asked_.loads) ChooseLoads();
}

void BlockLook::LookForMissing(const std::vector<uint32_t>& missing,
                               const std::vector<BlockName>& names) {
  Keys& keys = *keys_;
  const std::vector<bool> on_disk = parts_.kept->Have(*keys.kind, names);
  for (size_t i = 0; i < missing.size(); ++i) {
    keys.on_disk[missing[i]] = on_disk[i];
    found_ += on_disk[i] ? 1 : 0;
  }
  if (!asked_.loads || parts_.shared == nullptr ||
      !parts_.shared->asks().MayAsk(*keys.kind)) {
    return;
  }
  const std::vector<SharedAsks::Known> shared =
      parts_.shared->asks().Look(names);
  for (size_t i = 0; i < missing.size(); ++i) {
    if (!on_disk[i] && MayMatter(missing[i])) {
      keys.shared[missing[i]] = shared[i];
    }
  }
}

// The memory searches for a row from the end, and looks at no key before the
// row that it finds. It searches other keys from their front.
bool BlockLook::MayMatter(uint32_t position) const {
  return !IsRow(asked_keys().shape) ||
         keys_->answers[position] == kMissingBlock;
}

void BlockLook::ChooseLoads() {
  Keys& keys = *keys_;
  std::vector<bool> kept = keys.on_disk;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (keys.shared[i] != SharedAsks::Known::kLacks) kept[i] = true;
  }
  // Blocks that follow an unknown key of a prefix may be of no use.
  const bool is_prefix = asked_keys().shape == BlockShape::kPrefix;
  std::vector<uint32_t> asked;
  for (const uint32_t i : WantedBlocks(asked_keys(), keys.answers, kept)) {
    if (keys.on_disk[i]) {
      if (!is_prefix || asked.empty()) keys.wanted.push_back(i);
    } else if (keys.shared[i] == SharedAsks::Known::kMayHave) {
      asked.push_back(i);
    } else {
      SetPending(i);
    }
  }
  if (!asked.empty() && AskShared(asked.front())) {
    for (const uint32_t i : asked) SetPending(i);
  }
}

void BlockLook::SetPending(uint32_t position) {
  BlockPlace& answer = keys_->answers[position];
  if (answer == kMissingBlock) answer = kPendingBlock;
}

bool BlockLook::AskShared(uint32_t first) {
  const Keys& keys = *keys_;
  const std::string_view all = asked_keys().keys;
  SharedAsks& asks = parts_.shared->asks();
  if (asks.IsWaiting(*keys.kind, all)) return true;
  // A question may have been answered since this call looked at the first key;
  // the engine's next call finds the answer.
  const BlockName name = keys.kind->NameOf(keys.kind->KeyOf(all, first));
  if (asks.Look({&name, 1}).front() != SharedAsks::Known::kMayHave) return true;
  SharedQuestion question = {
      .kind = keys.kind,
      .keys = std::string(all),
      .before = std::string(asked_keys().before),
      .shape = asked_keys().shape,
      .window = asked_keys().window,
      .answers = {keys.answers.begin(), keys.answers.end()},
      .asked = {},
      .asked_by = asked_.session,
      .account = {},
      .kept = {},
      .absent = {}};
  for (uint32_t i = 0; i < keys.answers.size(); ++i) {
    if (keys.shared[i] == SharedAsks::Known::kMayHave) {
      question.asked.push_back(i);
    } else if (keys.on_disk[i] ||
               keys.shared[i] == SharedAsks::Known::kIsLoading) {
      question.answers[i] = kPendingBlock;
    }
  }
  return asks.Begin(std::move(question));
}

void BlockLook::LoadSome() {
  Keys& keys = *keys_;
  const auto some = std::span(keys.wanted).subspan(keys.next_wanted);
  const auto wanted = some.first(std::min(some.size(), KeptBlocks::kMostNames));
  const std::optional<std::vector<bool>> are_loading =
      parts_.disk->loads().Begin(asked_.session, keys.kind, asked_keys(),
                                 wanted);
  for (size_t i = 0; are_loading && i < wanted.size(); ++i) {
    if ((*are_loading)[i]) SetPending(wanted[i]);
  }
  keys.next_wanted += wanted.size();
}

void BlockLook::EndKeys() {
  if (!keys_->used.keys.empty()) used_.push_back(std::move(keys_->used));
  keys_.reset();
  ++next_;
}

}  // namespace pando
