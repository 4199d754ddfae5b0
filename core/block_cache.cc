#include "core/block_cache.h"

#include "core/block_calls/block_ends.h"
#include "core/block_calls/block_reports.h"
#include "core/block_calls/block_reserve.h"
#include "core/block_calls/block_search.h"
#include "core/block_calls/kind_calls.h"

namespace pando {

absl::StatusOr<std::vector<BlockKind>> BlockCache::OpenKinds(
    SessionId session, std::span<const KindSpec> specs) {
  KindOpening opening(session, specs);
  cache_->Finish(opening);
  return opening.Take();
}

absl::StatusOr<std::vector<BlockKind>> BlockCache::FindKinds(
    SessionId session, std::span<const KindName> names) {
  KindSearch search(session, names);
  cache_->Finish(search);
  return search.Take();
}

absl::StatusOr<std::vector<BlockKind>> BlockCache::ResetKinds(
    SessionId session, std::span<const KindNumber> kinds) {
  KindReset reset(session, kinds);
  cache_->Finish(reset);
  return reset.Take();
}

absl::StatusOr<std::vector<BlockPlace>> BlockCache::Lookup(
    SessionId session, std::span<const BlockKeys> keys, bool peeks) {
  BlockSearch search(session, keys, peeks);
  cache_->Finish(search);
  return search.Take();
}

absl::StatusOr<std::vector<BlockPlace>> BlockCache::Acquire(
    const AcquireBlocksRequest& request) {
  BlockSearch search(request);
  cache_->Finish(search);
  return search.Take();
}

absl::StatusOr<uint32_t> BlockCache::Release(
    SessionId session, std::span<const BlockLockId> locks) {
  BlockRelease release(session, locks);
  cache_->Finish(release);
  return release.result();
}

absl::StatusOr<std::vector<BlockPlace>> BlockCache::Reserve(
    const ReserveBlocksRequest& request) {
  BlockReserve reserve(request);
  cache_->Finish(reserve);
  return reserve.Take();
}

absl::StatusOr<uint32_t> BlockCache::Publish(
    SessionId session, ReservationId reservation,
    std::span<const uint32_t> indices, std::vector<KeysOfKind>* published) {
  BlockCompletion completion(session, reservation, indices,
                             BlockCompletion::Outcome::kPublished,
                             /*notes_keys=*/published != nullptr);
  cache_->Finish(completion);
  if (published != nullptr) *published = completion.TakeKeys();
  return completion.result();
}

absl::StatusOr<uint32_t> BlockCache::Discard(
    SessionId session, ReservationId reservation,
    std::span<const uint32_t> indices) {
  BlockCompletion completion(session, reservation, indices,
                             BlockCompletion::Outcome::kDiscarded,
                             /*notes_keys=*/false);
  cache_->Finish(completion);
  return completion.result();
}

absl::StatusOr<uint32_t> BlockCache::Discard(
    SessionId session, std::span<const ReservationId> reservations) {
  BlockRelease release(session, reservations);
  cache_->Finish(release);
  return release.result();
}

BlockStats BlockCache::Stats() {
  BlockCensus census;
  cache_->Finish(census);
  return census.Take();
}

absl::StatusOr<BlockExplanation> BlockCache::Explain(KindNumber kind,
                                                     std::string_view key) {
  BlockInquiry inquiry(kind, key);
  cache_->Finish(inquiry);
  return inquiry.Take();
}

}  // namespace pando
