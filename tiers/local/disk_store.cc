#include "tiers/local/disk_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "gpu/page_checksum_plan.h"
#include "os/private_folder.h"
#include "tiers/local/file_calls.h"
#include "tiers/local/io_ring.h"

namespace pando {
namespace {

constexpr uint64_t kMagic = 0x3276726569746e50;  // "Pntierv2"
constexpr uint64_t kSegmentBytes = uint64_t{1} << 30;
constexpr uint64_t kHeaderBytes = DiskStore::kAlignment;
// A thread works on one block while the other is being moved.
constexpr size_t kRingDepth = 2;
constexpr uint64_t kStatBlockBytes = 512;  // see stat(3type)
constexpr mode_t kFileMode = 0600;
constexpr mode_t kFolderMode = 0700;

// The beginning of the index.
struct Header {
  uint64_t magic;
  uint64_t digest;
  uint64_t block_bytes;

  friend bool operator==(const Header&, const Header&) = default;
};

// A record as it lies in the index.
struct StoredRecord {
  PageHash hash;
  uint64_t checksum;
  uint32_t ordinal;
  uint32_t model;
  uint64_t ns_digest;
  uint64_t check;  // over the fields above and the slot
};
static_assert(sizeof(StoredRecord) == 64);

uint64_t RoundUp(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

uint64_t CheckOf(const StoredRecord& record, uint32_t slot) {
  uint64_t words[sizeof(StoredRecord) / sizeof(uint64_t)];
  std::memcpy(words, &record, sizeof(record));
  uint64_t sum = 0;
  for (size_t i = 0; i + 1 < std::size(words); ++i) {
    sum += MixWord(words[i], uint64_t{slot} * std::size(words) + i);
  }
  return sum;
}

off_t OffsetOfRecord(uint32_t slot) {
  return static_cast<off_t>(kHeaderBytes + slot * sizeof(StoredRecord));
}

uint32_t SlotsPerSegment(uint64_t slot_bytes) {
  return static_cast<uint32_t>(
      std::max<uint64_t>(1, kSegmentBytes / slot_bytes));
}

std::string SegmentPath(const std::string& folder, size_t number) {
  return absl::StrFormat("%s/segment-%05u", folder, number);
}

absl::StatusOr<UniqueFd> OpenFile(const std::string& path, int flags) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd file(open(path.c_str(), kFlags | flags, kFileMode));
  if (!file.valid() && errno == EINVAL && flags == O_DIRECT) {
    return OpenFile(path, 0);  // this file system has no such flag
  }
  if (!file.valid()) return absl::ErrnoToStatus(errno, "open " + path);
  struct stat status;
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return absl::FailedPreconditionError(path + " is no regular file");
  }
  // A file of another user is refused: that user may have it open, and read all
  // that is written to it.
  if (status.st_uid != geteuid() || status.st_nlink != 1) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s belongs to user %u and has %u names; must belong to pandod's user, "
        "%u, and have one",
        path, status.st_uid, status.st_nlink, geteuid()));
  }
  return file;
}

// The file may have been made by hand, so its mode is set here.
absl::Status MakePrivate(const UniqueFd& file, const std::string& path) {
  if (fchmod(file.get(), kFileMode) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "chmod " + path);
}

// Bytes of the disk that the tier's files take already.
uint64_t TakenBytes(const std::string& folder) {
  uint64_t bytes = 0;
  struct stat status;
  for (size_t i = 0; stat(SegmentPath(folder, i).c_str(), &status) == 0; ++i) {
    bytes += static_cast<uint64_t>(status.st_blocks) * kStatBlockBytes;
  }
  return bytes;
}

// Fails if the disk has no room for the tier. It is called before the files are
// made, so that too large a size does not fill the disk first. `in` is the
// folder, or the folder in which it is to be made.
absl::Status CheckRoom(const DiskStore::Config& config, const std::string& in) {
  struct statvfs disk;
  if (statvfs(in.c_str(), &disk) != 0) {
    return absl::ErrnoToStatus(errno, "ask for the room in " + in);
  }
  const uint64_t room =
      uint64_t{disk.f_bavail} * disk.f_frsize + TakenBytes(config.folder);
  if (config.max_bytes <= room) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "tier-disk-bytes is %u; the file system of %s has room for %u",
      config.max_bytes, config.folder, room));
}

// Allocates room on the disk for the whole file.
absl::Status SetSize(const UniqueFd& file, uint64_t bytes,
                     const std::string& path) {
  const auto size = static_cast<off_t>(bytes);
  if (ftruncate(file.get(), size) == 0) {
    int result = 0;
    do {
      result = fallocate(file.get(), 0, 0, size);
    } while (result != 0 && errno == EINTR);  // on tmpfs a signal ends it
    if (result == 0) return absl::OkStatus();
  }
  return absl::ErrnoToStatus(
      errno, absl::StrFormat("tier-disk-bytes need %u bytes in %s, which "
                             "cannot be taken",
                             bytes, path));
}

absl::StatusOr<uint32_t> CountSlots(const DiskStore::Config& config,
                                    uint64_t slot_bytes) {
  const uint64_t least = kHeaderBytes + slot_bytes + sizeof(StoredRecord);
  if (config.max_bytes < least) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "tier-disk-bytes is %u; must be at least %u, for one page",
        config.max_bytes, least));
  }
  const uint64_t slots =
      (config.max_bytes - kHeaderBytes) / (slot_bytes + sizeof(StoredRecord));
  return static_cast<uint32_t>(
      std::min<uint64_t>(slots, std::numeric_limits<uint32_t>::max()));
}

absl::Status MakeFolder(const std::string& folder) {
  if (mkdir(folder.c_str(), kFolderMode) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, "tier-disk: make the folder " + folder);
  }
  return CheckPrivateFolder("tier-disk", folder);
}

absl::Status Lock(const UniqueFd& index, const std::string& folder) {
  if (flock(index.get(), LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("tier-disk is '", folder, "', which another pandod uses"));
}

// Reads the header of the index: all zeros if the file is new. Fails if the
// file is not a tier's index, so that it stays as it is.
absl::StatusOr<Header> ReadHeader(const UniqueFd& index,
                                  const std::string& folder) {
  Header header = {};
  struct stat status;
  if (fstat(index.get(), &status) != 0) {
    return absl::ErrnoToStatus(errno, "tier-disk: ask for the size of index");
  }
  if (status.st_size == 0) return header;
  const absl::Status read = ReadAll(index.get(), &header, sizeof(header), 0);
  if (read.ok() && header.magic == kMagic) return header;
  return absl::FailedPreconditionError(absl::StrCat(
      "tier-disk is '", folder, "', where the file index is not of a tier"));
}

}  // namespace

absl::Status DiskStore::Check(const Config& config) {
  const uint64_t slot_bytes = RoundUp(config.block_bytes, kAlignment);
  RETURN_IF_ERROR(CountSlots(config, slot_bytes).status());
  if (access(config.folder.c_str(), F_OK) == 0) {
    RETURN_IF_ERROR(CheckPrivateFolder("tier-disk", config.folder));
    return CheckRoom(config, config.folder);
  }
  const std::string parent =
      std::filesystem::absolute(config.folder).parent_path();
  if (access(parent.c_str(), W_OK | X_OK) != 0) {
    return absl::ErrnoToStatus(errno,
                               "tier-disk: make the folder " + config.folder);
  }
  return CheckRoom(config, parent);
}

absl::StatusOr<std::unique_ptr<DiskStore>> DiskStore::Open(
    const Config& config) {
  const uint64_t slot_bytes = RoundUp(config.block_bytes, kAlignment);
  ASSIGN_OR_RETURN(const uint32_t slots, CountSlots(config, slot_bytes));
  RETURN_IF_ERROR(MakeFolder(config.folder));
  ASSIGN_OR_RETURN(UniqueFd index, OpenFile(config.folder + "/index", 0));
  RETURN_IF_ERROR(Lock(index, config.folder));
  RETURN_IF_ERROR(CheckRoom(config, config.folder));
  auto store =
      absl::WrapUnique(new DiskStore(std::move(index), slots, slot_bytes));
  RETURN_IF_ERROR(store->ReadIndex(config));
  RETURN_IF_ERROR(store->MakeSegments(config.folder));
  return store;
}

DiskStore::DiskStore(UniqueFd index, uint32_t slots, uint64_t slot_bytes)
    : index_(std::move(index)),
      slots_(slots),
      slot_bytes_(slot_bytes),
      slots_per_segment_(SlotsPerSegment(slot_bytes)) {}

absl::Status DiskStore::ReadIndex(const Config& config) {
  const Header wanted = {kMagic, config.digest, config.block_bytes};
  ASSIGN_OR_RETURN(const Header header, ReadHeader(index_, config.folder));
  RETURN_IF_ERROR(MakePrivate(index_, config.folder + "/index"));
  const bool is_ours = header == wanted;
  if (!is_ours) {
    if (ftruncate(index_.get(), 0) != 0) {
      return absl::ErrnoToStatus(errno, "empty the disk tier");
    }
    // The header is written before the file gets its size, so that the file
    // never begins with anything else.
    RETURN_IF_ERROR(WriteAll(index_.get(), &wanted, sizeof(wanted), 0));
  }
  const uint64_t records_bytes = slots_ * sizeof(StoredRecord);
  RETURN_IF_ERROR(SetSize(index_, kHeaderBytes + records_bytes, config.folder));
  if (!is_ours) return absl::OkStatus();
  std::vector<StoredRecord> records(slots_);
  RETURN_IF_ERROR(
      ReadAll(index_.get(), records.data(), records_bytes, OffsetOfRecord(0)));
  for (uint32_t slot = 0; slot < slots_; ++slot) {
    const StoredRecord& stored = records[slot];
    if (stored.check != CheckOf(stored, slot)) continue;
    found_.push_back({slot,
                      {stored.hash, stored.checksum, stored.ordinal,
                       stored.ns_digest, stored.model}});
  }
  return absl::OkStatus();
}

absl::Status DiskStore::MakeSegments(const std::string& folder) {
  for (uint64_t first = 0; first < slots_; first += slots_per_segment_) {
    const uint64_t slots =
        std::min<uint64_t>(slots_per_segment_, slots_ - first);
    const std::string path = SegmentPath(folder, segments_.size());
    ASSIGN_OR_RETURN(UniqueFd segment, OpenFile(path, O_DIRECT));
    RETURN_IF_ERROR(MakePrivate(segment, path));
    RETURN_IF_ERROR(SetSize(segment, slots * slot_bytes_, path));
    segments_.push_back(std::move(segment));
  }
  // Removes segments that a larger tier has left.
  for (size_t next = segments_.size();
       unlink(SegmentPath(folder, next).c_str()) == 0; ++next) {
  }
  return absl::OkStatus();
}

FilePart DiskStore::PartOf(uint32_t slot) const {
  return {.file = segments_[slot / slots_per_segment_].get(),
          .offset = static_cast<off_t>(slot % slots_per_segment_ * slot_bytes_),
          .bytes = slot_bytes_};
}

std::unique_ptr<IoQueue> DiskStore::MakeQueue() const {
  absl::StatusOr<std::unique_ptr<IoRing>> ring = IoRing::Make(kRingDepth);
  if (ring.ok()) return *std::move(ring);
  return std::make_unique<PlainQueue>();
}

absl::Status DiskStore::WriteRecord(uint32_t slot, const Record& record) const {
  StoredRecord stored = {.hash = record.hash,
                         .checksum = record.checksum,
                         .ordinal = record.ordinal,
                         .model = record.model,
                         .ns_digest = record.ns_digest,
                         .check = 0};
  stored.check = CheckOf(stored, slot);
  return WriteAll(index_.get(), &stored, sizeof(stored), OffsetOfRecord(slot));
}

absl::Status DiskStore::EraseRecord(uint32_t slot) const {
  const StoredRecord none = {};
  return WriteAll(index_.get(), &none, sizeof(none), OffsetOfRecord(slot));
}

absl::Status DiskStore::Sync() const {
  if (fdatasync(index_.get()) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "sync the disk tier");
}

}  // namespace pando
