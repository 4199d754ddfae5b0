#include "tiers/local/io_ring.h"

#include <cerrno>
#include <cstdint>
#include <ctime>

#include "absl/memory/memory.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace pando {

namespace {

// How long to wait before asking again a kernel that has no memory for the
// request.
constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 1'000'000};

// A sandbox may permit making a ring, but not using it.
absl::Status TryNothing(io_uring& ring) {
  io_uring_prep_nop(io_uring_get_sqe(&ring));
  const int submitted = io_uring_submit_and_wait(&ring, 1);
  if (submitted < 0) return absl::ErrnoToStatus(-submitted, "use a ring");
  io_uring_cqe* entry = nullptr;
  const int done = io_uring_peek_cqe(&ring, &entry);
  if (done < 0) return absl::ErrnoToStatus(-done, "use a ring");
  io_uring_cqe_seen(&ring, entry);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<IoRing>> IoRing::Make(size_t depth) {
  io_uring ring;
  const int made =
      io_uring_queue_init(static_cast<unsigned>(depth), &ring, /*flags=*/0);
  if (made < 0) return absl::ErrnoToStatus(-made, "make a ring");
  auto queue = absl::WrapUnique(new IoRing(depth, ring));
  RETURN_IF_ERROR(TryNothing(queue->ring_));
  return queue;
}

IoRing::~IoRing() { io_uring_queue_exit(&ring_); }

void IoRing::Begin(size_t tag, const Transfer& transfer) {
  io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
  CHECK(entry != nullptr);
  const auto& [file, offset, bytes] = transfer.part;
  const auto size = static_cast<unsigned>(bytes);
  const auto from = static_cast<uint64_t>(offset);
  if (transfer.is_write) {
    io_uring_prep_write(entry, file, transfer.memory, size, from);
  } else {
    io_uring_prep_read(entry, file, transfer.memory, size, from);
  }
  entry->user_data = tag;
  transfers_[tag] = transfer;
  io_uring_submit(&ring_);  // Await submits again what the kernel refuses now
}

IoQueue::Done IoRing::Await() {
  io_uring_cqe* entry = nullptr;
  while (io_uring_peek_cqe(&ring_, &entry) != 0) {
    const int submitted = io_uring_submit_and_wait(&ring_, 1);
    if (submitted >= 0 || submitted == -EINTR) continue;
    CHECK(submitted == -EAGAIN || submitted == -EBUSY || submitted == -ENOMEM);
    nanosleep(&kPause, nullptr);
  }
  const size_t tag = entry->user_data;
  const int moved = entry->res;
  io_uring_cqe_seen(&ring_, entry);
  const Transfer& transfer = transfers_[tag];
  const bool is_whole =
      moved >= 0 && static_cast<size_t>(moved) == transfer.part.bytes;
  // If the kernel moved only a part, or failed, a plain call moves the whole
  // block again, or says why it cannot.
  return {tag, is_whole ? absl::OkStatus() : Move(transfer)};
}

}  // namespace pando
