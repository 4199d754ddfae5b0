#include "core/blocks/kind_table.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/blocks/block_record.h"
#include "core/requests/errors.h"

namespace pando {
namespace {

uint64_t RoundUp(uint64_t bytes) {
  return (bytes + kPlaceBytes - 1) / kPlaceBytes * kPlaceBytes;
}

absl::Status FieldError(size_t index, const char* field, uint64_t value,
                        const std::string& demand) {
  return MakeError(Reason::kInvalidField, Subject::kKinds,
                   absl::StrCat("[", index, "].", field, " is ", value,
                                "; it must be ", demand));
}

absl::Status Mismatch(size_t index, const char* field, uint64_t value,
                      uint64_t known) {
  return MakeError(
      Reason::kLayoutMismatch, Subject::kKinds,
      absl::StrCat("[", index, "].", field, " is ", value,
                   ", but the kind of this identity is there with ", known));
}

}  // namespace

absl::Status KindTable::Check(const KindSpec& spec, size_t index) const {
  if (spec.identity.empty() || spec.identity.size() > kMaxIdentityBytes) {
    return FieldError(index, "identity", spec.identity.size(),
                      absl::StrCat("of 1 to ", kMaxIdentityBytes, " bytes"));
  }
  if (spec.label.size() > kMaxLabelBytes) {
    return FieldError(index, "label", spec.label.size(),
                      absl::StrCat("of at most ", kMaxLabelBytes, " bytes"));
  }
  if (spec.key_bytes < kMinKeyBytes || spec.key_bytes > kMaxKeyBytes) {
    return FieldError(index, "key_bytes", spec.key_bytes,
                      absl::StrCat(kMinKeyBytes, " to ", kMaxKeyBytes));
  }
  if (spec.shards == 0) {
    return FieldError(index, "shards", spec.shards, "at least 1");
  }
  if (spec.shard_bytes == 0) {
    return FieldError(index, "shard_bytes", spec.shard_bytes, "at least 1");
  }
  const uint64_t most = extent_bytes_ / spec.shards;
  if (spec.shard_bytes > most || RoundUp(spec.shard_bytes) > most) {
    return MakeError(Reason::kInvalidField, Subject::kBlockExtent,
                     absl::StrCat("kinds[", index, "] has ", spec.shards,
                                  " shards of ", spec.shard_bytes,
                                  " bytes; a block must fit into an extent of ",
                                  extent_bytes_, " bytes"));
  }
  const uint64_t least = extent_bytes_ / kMaxBlocksOfExtent;
  if (RoundUp(spec.shard_bytes) * spec.shards < least) {
    return MakeError(
        Reason::kInvalidField, Subject::kBlockExtent,
        absl::StrCat("kinds[", index, "] has ", spec.shards, " shards of ",
                     spec.shard_bytes, " bytes; an extent of ", extent_bytes_,
                     " bytes needs blocks of ", least, " bytes or more"));
  }
  const Kind* const known = Find(KindName{spec.ns, spec.identity});
  if (known == nullptr) return absl::OkStatus();
  return CheckAgree(spec, known->info.spec, index);
}

absl::Status KindTable::CheckAgree(const KindSpec& spec, const KindSpec& there,
                                   size_t index) {
  if (spec.identity != there.identity || spec.ns != there.ns) {
    return absl::OkStatus();
  }
  if (there.key_bytes != spec.key_bytes) {
    return Mismatch(index, "key_bytes", spec.key_bytes, there.key_bytes);
  }
  if (there.shard_bytes != spec.shard_bytes) {
    return Mismatch(index, "shard_bytes", spec.shard_bytes, there.shard_bytes);
  }
  if (there.shards != spec.shards) {
    return Mismatch(index, "shards", spec.shards, there.shards);
  }
  return absl::OkStatus();
}

absl::Status KindTable::CheckRoom(size_t more) const {
  if (kinds_.size() + more <= kMaxKinds) return absl::OkStatus();
  return MakeError(Reason::kSessionLimit, Subject::kKinds,
                   absl::StrCat(more, " more kinds are needed, and there are ",
                                kinds_.size(), "; the limit is ", kMaxKinds));
}

Kind& KindTable::FindOrMake(const KindSpec& spec) {
  Kind* const known = Find(KindName{spec.ns, spec.identity});
  return known != nullptr ? *known : Make(spec, 1);
}

Kind* KindTable::Find(const KindName& name) const {
  const auto it = newest_.find(name);
  return it == newest_.end() ? nullptr : it->second;
}

Kind* KindTable::Find(KindNumber number) const {
  const auto it = kinds_.find(number);
  return it == kinds_.end() ? nullptr : it->second.get();
}

Kind& KindTable::Renew(Kind& kind) {
  kind.is_newest = false;
  Kind& renewed = Make(kind.info.spec, kind.info.generation + 1);
  renewed.older_kinds = std::exchange(kind.older_kinds, 0) + 1;
  EndIfUnused(kind);
  return renewed;
}

Kind& KindTable::Make(const KindSpec& spec, uint32_t generation) {
  const BlockKind info = {.number = KindNumber(++last_number_),
                          .generation = generation,
                          .spec = spec};
  Kind& kind = Add(info, ledger_->AddKind(info));
  newest_[KindName{spec.ns, spec.identity}] = &kind;
  return kind;
}

Kind& KindTable::Add(BlockKind info, uint32_t cell) {
  auto kind = std::make_unique<Kind>();
  const KindSpec& spec = info.spec;
  info.shard_stride = RoundUp(spec.shard_bytes);
  kind->ledger_cell = cell;
  kind->block_places =
      static_cast<uint32_t>(info.shard_stride * spec.shards / kPlaceBytes);
  kind->slots = static_cast<uint32_t>(extent_bytes_ / kind->block_bytes());
  kind->record_bytes =
      static_cast<uint32_t>((sizeof(BlockRecord) + spec.key_bytes + 3) / 4 * 4);
  kind->share = &quotas_->ShareOf(spec.label);
  kind->info = std::move(info);
  return *(kinds_[kind->info.number] = std::move(kind));
}

void KindTable::Recover() {
  for (uint32_t cell = 0; cell < ledger_->kind_cells(); ++cell) {
    std::optional<BlockKind> info = ledger_->KindIn(cell);
    if (!info.has_value()) continue;
    if (!Check(info->spec, 0).ok() || Find(info->number) != nullptr) {
      ledger_->RemoveKind(cell);  // this code would not have made it so
      continue;
    }
    last_number_ = std::max(last_number_, info->number.value());
    Add(*std::move(info), cell);
  }
  for (const auto& [number, kind] : kinds_) {
    Kind*& newest =
        newest_[KindName{kind->info.spec.ns, kind->info.spec.identity}];
    if (newest == nullptr || newest->info.generation < kind->info.generation) {
      newest = kind.get();
    }
  }
  for (const auto& [number, kind] : kinds_) {
    Kind* const newest =
        Find(KindName{kind->info.spec.ns, kind->info.spec.identity});
    if (kind.get() == newest) continue;
    ++newest->older_kinds;
    kind->is_newest = false;
    EndIfUnused(*kind);
  }
}

void KindTable::Open(OpenKindList& list, Kind& kind) {
  if (list.emplace(kind.info.number, &kind).second) ++kind.open_sessions;
}

void KindTable::Close(OpenKindList& list, Kind& kind) {
  if (list.erase(kind.info.number) == 0) return;
  --kind.open_sessions;
  EndIfUnused(kind);
}

void KindTable::CloseAll(OpenKindList& list) {
  for (const auto& [number, kind] : list) {
    --kind->open_sessions;
    EndIfUnused(*kind);
  }
  list.clear();
}

void KindTable::EndIfUnused(Kind& kind) {
  if (kind.is_newest || kind.open_sessions > 0 || kind.has_ended()) return;
  garbage_.push_back(std::move(kind.index));
  ended_.push_back(&kind);
}

void KindTable::DeleteUnused() {
  for (auto it = kinds_.begin(); it != kinds_.end();) {
    const Kind& kind = *it->second;
    if (kind.open_sessions > 0 || !kind.extents.empty() ||
        kind.older_kinds > 0) {
      ++it;
      continue;
    }
    ledger_->RemoveKind(kind.ledger_cell);
    ended_counters_ += kind.counters;
    std::erase(ended_, &kind);
    const KindName name{kind.info.spec.ns, kind.info.spec.identity};
    if (kind.is_newest) {
      newest_.erase(name);
    } else {
      --Find(name)->older_kinds;
    }
    it = kinds_.erase(it);
  }
}

}  // namespace pando
