#include "tests/core/block_program.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/blocks/block_ledger.h"
#include "core/operators/earlier_blocks.h"

namespace pando {
namespace {

constexpr uint32_t kExtentPlaces = 8;
constexpr uint32_t kExtents = 6;
constexpr uint32_t kMaxIds = 4;
const std::vector<uint32_t> kBlockPlaces = {1, 2, 4};
constexpr uint32_t kKeyBytes[] = {16, 32, 21};

// The first kind has a floor and a cap; the other two have a cap together.
const std::vector<BlockModel::Quota> kQuotas = {
    {.kinds = {0}, .floor = 2, .cap = 3},
    {.kinds = {1, 2}, .floor = 1, .cap = 4}};
constexpr const char* kQuotaLabels[] = {"kind 0", "kind [12]"};

BlockOptions OptionsOfBlocks(bool has_quotas) {
  constexpr uint64_t kExtentBytes = kExtentPlaces * kPlaceBytes;
  BlockOptions options = {.memory_bytes = kExtents * kExtentBytes,
                          .extent_bytes = kExtentBytes};
  for (size_t i = 0; has_quotas && i < kQuotas.size(); ++i) {
    options.quotas.push_back({.name = kQuotaLabels[i],
                              .label = kQuotaLabels[i],
                              .floor_bytes = kQuotas[i].floor * kExtentBytes,
                              .cap_bytes = kQuotas[i].cap * kExtentBytes});
  }
  return options;
}

// Returns key `i` of prompt `p`. Three prompts each begin with the same keys.
std::string KeyOf(uint32_t kind, uint32_t p, uint32_t i) {
  std::string key = absl::StrCat(i < 3 ? p / 3 : p, "/", i, "/");
  key.resize(kKeyBytes[kind], 'k');
  return key;
}

KindSpec SpecOf(uint32_t kind) {
  return {.ns = {},
          .identity = absl::StrCat("kind ", kind),
          .label = absl::StrCat("kind ", kind),
          .key_bytes = kKeyBytes[kind],
          .shard_bytes = kPlaceBytes * (kind == 2 ? 2 : 1) - 5,
          .shards = kind == 0 ? 1u : 2u};
}

std::string Describe(std::span<const BlockPlace> places) {
  return absl::StrJoin(places, " ", [](std::string* out, BlockPlace place) {
    absl::StrAppend(out, static_cast<int32_t>(place.value()));
  });
}

}  // namespace

BlockProgram::BlockProgram(program::Choices choices, uint32_t kinds)
    : choices_(std::move(choices)),
      kinds_(kinds),
      has_quotas_(kinds > 1 && Below(2) == 1),
      ledger_(BlockLedger::BytesFor(OptionsOfBlocks(has_quotas_)) /
              sizeof(uint64_t)),
      model_(kBlockPlaces, kExtentPlaces,
             has_quotas_ ? kQuotas : std::vector<BlockModel::Quota>()),
      sessions_(kSessions),
      opened_(kinds),
      has_ended_(kinds) {
  MakeCache();
  for (uint32_t slot = 0; slot < kSessions; ++slot) OpenSession(slot);
}

void BlockProgram::MakeCache() {
  BlockOptions blocks = OptionsOfBlocks(has_quotas_);
  blocks.ledger = std::as_writable_bytes(std::span(ledger_));
  cache_ = std::make_unique<PrefixCache>(PrefixCache::Options{
      .page_tokens = 4, .capacity_pages = 2, .blocks = blocks});
  blocks_ = std::make_unique<BlockCache>(cache_.get());
  BlockLedger::Complete(blocks.ledger);
}

std::string BlockProgram::Restart() {
  last_ = "restart";
  std::vector<uint64_t> left = ledger_;
  ledger_.swap(left);  // hides what the old cache does while it ends
  MakeCache();
  const absl::Time now = absl::UnixEpoch() + absl::Seconds(model_.now);
  cache_->ExpireSessions(now, absl::Hours(1));
  Lost earlier = {.session = {}, .as = ++last_lost_};
  earlier.session.id = SessionId(++last_id_);
  earlier.session.writer = ++last_id_;
  earlier.session.number = cache_->OpenSession(earlier.session.id, "earlier");
  cache_->AttachSession(earlier.session.id, WriterId(earlier.session.writer))
      .IgnoreError();
  EarlierBlocks blocks(earlier.session.id);
  cache_->Step(blocks);
  model_.Restart(earlier.as);
  lost_.clear();
  requests_.clear();
  for (Session& session : sessions_) session.generations.assign(kinds_, 0);
  EndUnusedKinds();
  if (Below(2) == 0 || !model_.HoldsAnything(earlier.as)) {
    cache_->CloseSession(earlier.session.id);
    model_.EndSession(earlier.as);
  } else {
    cache_->SuspendSession(earlier.session.id, now);
    cache_->ExpireSessions(now, absl::Hours(1));
    lost_.push_back(earlier);
  }
  for (uint32_t slot = 0; slot < kSessions; ++slot) {
    if (std::string error = OpenSession(slot); !error.empty()) return error;
  }
  return "";
}

std::string BlockProgram::OpenSession(uint32_t slot) {
  Session& session = sessions_[slot];
  session = {};
  session.id = SessionId(++last_id_);
  session.number = cache_->OpenSession(session.id, "worker");
  session.generations.assign(kinds_, 0);
  if (Below(3) > 0) {
    session.writer = ++last_id_;
    cache_->AttachSession(session.id, WriterId(session.writer)).IgnoreError();
  }
  return OpenKinds(slot);
}

std::string BlockProgram::OpenKinds(uint32_t slot) {
  for (uint32_t kind = 0; kind < kinds_; ++kind) {
    const std::vector<KindSpec> specs = {SpecOf(kind)};
    const auto opened = blocks_->OpenKinds(sessions_[slot].id, specs);
    if (!opened.ok()) return opened.status().ToString();
    const BlockKind& found = opened->front();
    const auto newest = static_cast<uint32_t>(opened_[kind].size());
    if (newest > 0 && found.number != opened_[kind].back().number &&
        IsForgotten(kind, newest)) {
      has_ended_[kind].back() = true;
    }
    if (newest == 0 || has_ended_[kind].back()) {
      opened_[kind].push_back(found);
      has_ended_[kind].push_back(false);
    }
    if (found.number != opened_[kind].back().number) {
      return "opened is not the newest kind";
    }
    sessions_[slot].generations[kind] =
        static_cast<uint32_t>(opened_[kind].size());
  }
  EndUnusedKinds();
  return "";
}

void BlockProgram::EndUnusedKinds() {
  for (uint32_t kind = 0; kind < kinds_; ++kind) {
    for (uint32_t g = 1; g < opened_[kind].size(); ++g) {
      const bool is_open = std::any_of(
          sessions_.begin(), sessions_.end(),
          [&](const Session& s) { return s.generations[kind] == g; });
      if (is_open || has_ended_[kind][g - 1]) continue;
      has_ended_[kind][g - 1] = true;
      model_.EndKind(kind, g);
    }
  }
}

std::vector<BlockModel::Keys> BlockProgram::AnyKeys(uint32_t slot) {
  std::vector<BlockModel::Keys> all;
  const uint32_t parts = 1 + Below(kinds_);
  for (uint32_t n = 0; n < parts; ++n) {
    BlockModel::Keys keys;
    keys.kind = Below(kinds_);
    keys.generation = sessions_[slot].generations[keys.kind];
    const uint32_t prompt = Below(9);
    const uint32_t begin = Below(3) == 0 ? Below(4) : 0;
    const uint32_t end = begin + Below(7);
    for (uint32_t i = begin; i < end; ++i) {
      keys.keys.push_back(KeyOf(keys.kind, prompt, i));
    }
    if (begin > 0 && Below(2) == 0) {
      keys.before = KeyOf(keys.kind, prompt, begin - 1);
    }
    keys.shape = static_cast<BlockShape>(Below(4));
    keys.window = 1 + Below(3);
    all.push_back(std::move(keys));
  }
  return all;
}

BlockKeys BlockProgram::ToKeys(const BlockModel::Keys& keys, uint32_t,
                               std::string& bytes) const {
  bytes = absl::StrJoin(keys.keys, "");
  return {.kind = opened_[keys.kind][keys.generation - 1].number,
          .keys = bytes,
          .before = keys.before,
          .shape = keys.shape,
          .window = keys.window};
}

BlockProgram::Request BlockProgram::AnyRequest(
    uint32_t slot, const BlockModel::HoldName& name) {
  Request any = {AnyKeys(slot), Below(3) == 0};
  if (model_.FindHold(name) == nullptr || Below(2) == 0) return any;
  const Request& first = requests_.at(name);
  const bool is_open = std::all_of(
      first.keys.begin(), first.keys.end(), [&](const BlockModel::Keys& k) {
        return sessions_[slot].generations[k.kind] == k.generation;
      });
  return is_open ? first : any;
}

bool BlockProgram::IsTaken(const BlockModel::HoldName& name,
                           const Request& request) const {
  return model_.FindHold(name) != nullptr && requests_.at(name) != request;
}

std::string BlockProgram::Find(uint32_t slot, bool locks) {
  const uint64_t lock = 1 + Below(kMaxIds);
  const BlockModel::HoldName name{slot, false, lock};
  const Request asked = AnyRequest(slot, name);
  const auto& [keys, all] = asked;
  std::vector<std::string> bytes(keys.size());
  std::vector<BlockKeys> request;
  for (size_t i = 0; i < keys.size(); ++i) {
    request.push_back(ToKeys(keys[i], slot, bytes[i]));
  }
  const SessionId session = sessions_[slot].id;
  const bool is_taken = locks && IsTaken(name, asked);
  const bool peeks = !locks && Below(2) == 0;
  const auto answers =
      locks ? blocks_->Acquire({session, BlockLockId(lock), request, all})
            : blocks_->Lookup(session, request, peeks);
  last_ = absl::StrCat(locks ? "acquire " : peeks ? "peek " : "lookup ", all);
  if (answers.ok() == is_taken) return answers.status().ToString();
  if (is_taken) return "";
  if (locks) requests_[name] = asked;
  const auto expected =
      locks ? model_.Acquire(name, keys, all) : model_.Lookup(keys, peeks);
  if (*answers == expected) return "";
  return absl::StrCat("answers ", Describe(*answers), ", but expected ",
                      Describe(expected));
}

std::string BlockProgram::Reserve(uint32_t slot) {
  const uint64_t id = 1 + Below(kMaxIds);
  const BlockModel::HoldName name{slot, true, id};
  Request asked = AnyRequest(slot, name);
  asked.all = false;
  const auto& keys = asked.keys;
  std::vector<std::string> bytes(keys.size());
  std::vector<BlockKeys> request;
  size_t count = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    request.push_back(ToKeys(keys[i], slot, bytes[i]));
    count += keys[i].keys.size();
  }
  const bool is_taken = IsTaken(name, asked);
  const auto answers =
      blocks_->Reserve({sessions_[slot].id, ReservationId(id), request, false});
  last_ = absl::StrCat("reserve ", slot, "/", id);
  if (answers.ok() == is_taken) return answers.status().ToString();
  if (is_taken) return "";
  requests_[name] = asked;
  absl::StrAppend(&last_, ": ", Describe(*answers));
  if (answers->size() != count) return "a key has no answer";
  return model_.Reserve(name, keys, false, *answers);
}

std::vector<uint32_t> BlockProgram::AnyIndices(
    const BlockModel::HoldName& name) {
  const BlockModel::Hold* const hold = model_.FindHold(name);
  std::vector<uint32_t> indices;
  if (hold == nullptr || Below(2) == 0) return indices;
  for (uint32_t i = 0; i < hold->places.size(); ++i) {
    if (Below(2) == 0) indices.push_back(i);
  }
  return indices;
}

std::string BlockProgram::Complete(uint32_t slot, bool publishes) {
  const uint64_t id = 1 + Below(kMaxIds);
  const BlockModel::HoldName name{slot, true, id};
  const std::vector<uint32_t> indices = AnyIndices(name);
  const SessionId session = sessions_[slot].id;
  last_ = absl::StrCat(publishes ? "publish " : "discard ", slot, "/", id);
  const auto unknown =
      publishes ? blocks_->Publish(session, ReservationId(id), indices)
                : blocks_->Discard(session, ReservationId(id), indices);
  if (!unknown.ok()) return unknown.status().ToString();
  const uint32_t expected =
      publishes ? model_.Publish(name, indices) : model_.Discard(name, indices);
  return *unknown == expected ? "" : "another number is unknown";
}

std::string BlockProgram::Release(uint32_t slot) {
  last_ = "release";
  const uint64_t first = 1 + Below(kMaxIds);
  const uint64_t second = 1 + Below(kMaxIds);
  const SessionId session = sessions_[slot].id;
  const bool are_locks = Below(4) > 0;
  const auto unknown =
      are_locks ? blocks_->Release(session, std::vector{BlockLockId(first),
                                                        BlockLockId(second)})
                : blocks_->Discard(session, std::vector{ReservationId(first),
                                                        ReservationId(second)});
  if (!unknown.ok()) return unknown.status().ToString();
  uint32_t expected = 0;
  for (uint64_t id : {first, second}) {
    expected += model_.Release({slot, !are_locks, id}) ? 0 : 1;
  }
  return *unknown == expected ? "" : "another number is unknown";
}

std::string BlockProgram::ResetKind(uint32_t slot) {
  const uint32_t kind = Below(kinds_);
  const uint32_t open = sessions_[slot].generations[kind];
  last_ = absl::StrCat("reset ", kind, "/", open);
  const auto renewed = blocks_->ResetKinds(
      sessions_[slot].id, std::vector{opened_[kind][open - 1].number});
  if (!renewed.ok()) return renewed.status().ToString();
  if (open == opened_[kind].size()) {
    opened_[kind].push_back(renewed->front());
    has_ended_[kind].push_back(false);
  }
  if (renewed->front().number != opened_[kind].back().number) {
    return "renewed is not the newest kind";
  }
  sessions_[slot].generations[kind] =
      static_cast<uint32_t>(opened_[kind].size());
  EndUnusedKinds();
  return "";
}

std::string BlockProgram::EndSession(uint32_t slot) {
  const Session session = sessions_[slot];
  const absl::Time now = absl::UnixEpoch() + absl::Seconds(model_.now);
  const uint32_t way = Below(3);
  last_ = absl::StrCat("end ", slot, " by way ", way);
  if (way == 0) {
    cache_->CloseSession(session.id);
    model_.EndSession(slot);
  } else if (way == 1 && session.writer != 0) {
    cache_->WriterGone(WriterId(session.writer));
    cache_->SuspendSession(session.id, now + absl::Seconds(10));
    model_.EndSession(slot);
  } else {
    cache_->SuspendSession(session.id, now);
    cache_->ExpireSessions(now, absl::Hours(1));
    if (session.writer == 0 || !model_.HoldsAnything(slot)) {
      model_.EndSession(slot);
    } else {
      lost_.push_back({session, ++last_lost_});
      model_.Quarantine(slot, last_lost_);
    }
  }
  sessions_[slot].generations.assign(kinds_, 0);
  EndUnusedKinds();
  return OpenSession(slot);
}

std::string BlockProgram::EndQuarantine() {
  last_ = "end quarantine";
  if (lost_.empty()) return "";
  const uint32_t i = Below(static_cast<uint32_t>(lost_.size()));
  const Lost lost = lost_[i];
  lost_.erase(lost_.begin() + i);
  switch (Below(3)) {
    case 0:
      cache_->WriterGone(WriterId(lost.session.writer));
      break;
    case 1:
      cache_->CloseSession(lost.session.id);
      break;
    default:
      if (!cache_->FreeQuarantine(lost.session.number).ok()) {
        return "nothing was in quarantine";
      }
      cache_->ExpireSessions(absl::UnixEpoch() + absl::Seconds(model_.now),
                             absl::Hours(1));
  }
  model_.EndSession(lost.as);
  return "";
}

std::string BlockProgram::Step() {
  const uint32_t slot = Below(kSessions);
  const uint32_t choice = Below(100);
  std::string error;
  if (choice < 18) {
    error = Find(slot, false);
  } else if (choice < 34) {
    error = Find(slot, true);
  } else if (choice < 60) {
    error = Reserve(slot);
  } else if (choice < 78) {
    error = Complete(slot, true);
  } else if (choice < 82) {
    error = Complete(slot, false);
  } else if (choice < 92) {
    error = Release(slot);
  } else if (choice < 94) {
    error = ResetKind(slot);
  } else if (choice < 95) {
    last_ = "open kinds";
    error = OpenKinds(slot);
  } else if (choice < 97) {
    error = EndSession(slot);
  } else if (choice < 98) {
    error = EndQuarantine();
  } else if (choice < 99) {
    error = Restart();
  } else {
    last_ = "time";
    model_.now += 1 + Below(25);
    cache_->ExpireSessions(absl::UnixEpoch() + absl::Seconds(model_.now),
                           absl::Hours(1));
  }
  return error.empty() ? Compare() : error;
}

bool BlockProgram::IsForgotten(uint32_t kind, uint32_t generation) const {
  return std::none_of(sessions_.begin(), sessions_.end(),
                      [&](const Session& s) {
                        return s.generations[kind] == generation;
                      }) &&
         std::none_of(model_.blocks().begin(), model_.blocks().end(),
                      [&](const BlockModel::Block& block) {
                        return block.kind == kind &&
                               block.generation == generation;
                      });
}

std::string BlockProgram::Compare() {
  for (const std::string& violation : cache_->CheckInvariants()) {
    return violation;
  }
  for (uint32_t kind = 0; kind < kinds_; ++kind) {
    for (uint32_t g = 1; g <= opened_[kind].size(); ++g) {
      for (uint32_t p = 0; p < 9; ++p) {
        for (uint32_t i = 0; i < 10 && !has_ended_[kind][g - 1]; ++i) {
          const std::string key = KeyOf(kind, p, i);
          const BlockModel::Block* const block = model_.Find(kind, g, key);
          const auto told = blocks_->Explain(opened_[kind][g - 1].number, key);
          if (!told.ok() && IsForgotten(kind, g)) {
            has_ended_[kind][g - 1] = true;
            break;
          }
          if (!told.ok()) return told.status().ToString();
          if (block == nullptr) {
            if (told->fate != BlockFate::kEvicted &&
                told->fate != BlockFate::kNeverStored) {
              return absl::StrCat(key, " should be missing");
            }
            continue;
          }
          const BlockFate fate =
              block->state == BlockModel::Block::kReady ? BlockFate::kReady
              : model_.IsOverdue(*block)                ? BlockFate::kOverdue
                                                        : BlockFate::kPending;
          if (told->fate != fate) return absl::StrCat(key, " has another fate");
          if (told->place.value() != block->place) return "another place";
          if (told->locks != block->locks) return "another number of locks";
          if (told->followers != model_.FollowersOf(*block)) {
            return absl::StrCat(key, " has ", told->followers, " followers");
          }
          if (fate != BlockFate::kReady && told->writer == SessionNumber()) {
            return "no writer is known";
          }
        }
      }
    }
  }
  return "";
}

}  // namespace pando
