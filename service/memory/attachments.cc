#include "service/memory/attachments.h"

#include <limits>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "base/status_macros.h"
#include "os/logging/log.h"

namespace pando {

absl::StatusOr<std::unique_ptr<Attachments>> Attachments::Start(
    PrefixCache* cache, const KvPool* pool, const HostMemory* block_memory,
    WriterId last_writer) {
  auto attachments =
      absl::WrapUnique(new Attachments(cache, pool, block_memory, last_writer));
  ASSIGN_OR_RETURN(
      attachments->watcher_,
      ProcessWatcher::Start([raw = attachments.get()](WriterId writer) {
        raw->OnProcessEnded(writer);
      }));
  return attachments;
}

absl::StatusOr<std::vector<SharedDescriptor>> Attachments::Attach(
    const AttachGrant& grant, pid_t pid) {
  const std::optional<WriterId> known = Find(grant.session, pid);
  WriterId writer = known.value_or(WriterId());
  if (!known.has_value()) {
    absl::MutexLock lock(&mutex_);
    writer = WriterId(++last_writer_);
  }
  // The process is watched last. If it ends while another process may still get
  // hold of these descriptors, the memory is then found to be held.
  ASSIGN_OR_RETURN(Exported exported, ExportTo(writer, grant.what));
  RETURN_IF_ERROR(cache_->AttachSession(grant.session, writer));
  const Attachment attachment{
      .session = grant.session,
      .pid = pid,
      .has_pool = grant.what == AttachGrant::What::kPool,
      .has_block_memory = grant.what == AttachGrant::What::kBlockMemory,
      .is_known_to_memory = exported.is_known_to_memory};
  if (known.has_value()) {
    Extend(writer, attachment);
  } else if (!Watch(writer, attachment)) {
    return absl::FailedPreconditionError("the session is over");
  }
  return std::move(exported.memory);
}

void Attachments::Adopt(SessionId session, WriterId writer) {
  absl::MutexLock lock(&mutex_);
  attachments_[writer] = {.session = session, .has_pool = true};
}

absl::StatusOr<Attachments::Exported> Attachments::ExportTo(
    WriterId writer, AttachGrant::What what) const {
  return what == AttachGrant::What::kPool ? ExportPoolTo(writer)
                                          : ExportBlockMemoryTo(writer);
}

absl::StatusOr<Attachments::Exported> Attachments::ExportPoolTo(
    WriterId writer) const {
  Exported exported;
  for (const KvShard& shard : pool_->shards()) {
    absl::StatusOr<UniqueFd> fd = pool_->ExportShardTo(writer, shard.index);
    if (absl::IsFailedPrecondition(fd.status())) {
      exported.is_known_to_memory = false;
      fd = pool_->ExportShard(shard.index);
    }
    if (!fd.ok()) {
      Log(LogLevel::kError,
          "a worker could not attach: no descriptor of a shard",
          {{"shard", shard.index},
           {"device", shard.device},
           {"reason", fd.status().message()}});
      return absl::UnavailableError(fd.status().message());
    }
    exported.memory.push_back({*std::move(fd), shard.size_bytes});
  }
  return exported;
}

absl::StatusOr<Attachments::Exported> Attachments::ExportBlockMemoryTo(
    WriterId writer) const {
  Exported exported;
  absl::StatusOr<UniqueFd> fd = block_memory_->ExportTo(writer);
  if (absl::IsFailedPrecondition(fd.status())) {
    exported.is_known_to_memory = false;
    fd = block_memory_->Export();
  }
  if (!fd.ok()) {
    Log(LogLevel::kError,
        "a worker could not attach: no descriptor of the block memory",
        {{"reason", fd.status().message()}});
    return absl::UnavailableError(fd.status().message());
  }
  exported.memory.push_back({*std::move(fd), block_memory_->bytes()});
  return exported;
}

void Attachments::Extend(WriterId writer, const Attachment& by) {
  absl::MutexLock lock(&mutex_);
  const auto found = attachments_.find(writer);
  if (found == attachments_.end()) return;
  found->second.has_pool |= by.has_pool;
  found->second.has_block_memory |= by.has_block_memory;
  found->second.is_known_to_memory &= by.is_known_to_memory;
}

std::optional<bool> Attachments::IsHeldBy(WriterId writer) const {
  Attachment attachment;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = attachments_.find(writer);
    if (found == attachments_.end() || !found->second.is_known_to_memory) {
      return std::nullopt;
    }
    attachment = found->second;
  }
  const bool holds_blocks =
      attachment.has_block_memory && block_memory_->IsHeldBy(writer);
  if (!attachment.has_pool || holds_blocks) return holds_blocks;
  return pool_->IsHeldBy(writer);
}

std::optional<WriterId> Attachments::Find(SessionId session, pid_t pid) const {
  if (pid == 0) return std::nullopt;
  absl::MutexLock lock(&mutex_);
  for (const auto& [writer, attachment] : attachments_) {
    if (attachment.session == session && attachment.pid == pid &&
        watcher_->IsLiving(writer)) {
      return writer;
    }
  }
  return std::nullopt;
}

bool Attachments::Watch(WriterId writer, const Attachment& attachment) {
  {
    absl::MutexLock lock(&mutex_);
    attachments_[writer] = attachment;
  }
  const absl::Status watched = watcher_->Watch(writer, attachment.pid);
  if (watched.ok()) return true;
  if (IsHeldBy(writer).has_value()) {
    absl::MutexLock lock(&mutex_);
    if (const auto found = attachments_.find(writer);
        found != attachments_.end()) {
      found->second.pid = 0;
    }
    return true;
  }
  Log(LogLevel::kWarning,
      "a process cannot be watched: the pages it leaves wait for the "
      "quarantine time",
      {{"pid", attachment.pid}, {"error", watched.message()}});
  const bool is_open =
      cache_->AttachSession(attachment.session, std::nullopt).ok();
  End(writer);
  return is_open;
}

void Attachments::OnProcessEnded(WriterId writer) {
  {
    absl::MutexLock lock(&mutex_);
    const auto found = attachments_.find(writer);
    if (found == attachments_.end()) return;
    found->second.pid = 0;
  }
  EndUnlessHeld(writer);
}

void Attachments::EndUnlessHeld(WriterId writer) {
  if (!IsHeldBy(writer).value_or(false)) End(writer);
}

void Attachments::End(WriterId writer) {
  {
    absl::MutexLock lock(&mutex_);
    attachments_.erase(writer);
  }
  watcher_->Forget(writer);
  cache_->WriterGone(writer);
}

void Attachments::CheckUnwatched() {
  for (WriterId writer : WritersWithoutProcess()) EndUnlessHeld(writer);
  // A lost session is never resumed, so its writer can be ended once it has
  // unmapped the memory, even if its process lives.
  constexpr uint32_t kAll = std::numeric_limits<uint32_t>::max();
  for (const QuarantineInfo& lost : cache_->ListQuarantine(kAll).sessions) {
    for (WriterId writer : lost.writers) {
      if (IsHeldBy(writer) == false) End(writer);
    }
  }
}

std::vector<WriterId> Attachments::WritersWithoutProcess() const {
  absl::MutexLock lock(&mutex_);
  std::vector<WriterId> found;
  for (const auto& [writer, attachment] : attachments_) {
    if (attachment.pid == 0) found.push_back(writer);
  }
  return found;
}

void Attachments::Forget(SessionId session) {
  absl::MutexLock lock(&mutex_);
  absl::erase_if(attachments_, [&](const auto& entry) {
    if (entry.second.session != session) return false;
    watcher_->Forget(entry.first);
    return true;
  });
}

std::optional<pid_t> Attachments::PidOf(WriterId writer) const {
  absl::MutexLock lock(&mutex_);
  const auto found = attachments_.find(writer);
  if (found == attachments_.end() || found->second.pid == 0) {
    return std::nullopt;
  }
  return found->second.pid;
}

}  // namespace pando
