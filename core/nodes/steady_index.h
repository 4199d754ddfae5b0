#ifndef PANDO_CORE_NODES_STEADY_INDEX_H_
#define PANDO_CORE_NODES_STEADY_INDEX_H_

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "base/check.h"

namespace pando {

// A hash table of numbers that grows without stalls; the keys of the numbers
// are elsewhere. As it grows, it never moves more than one bucket of kCells
// numbers at once (extendible hashing). A removal leaves nothing behind that
// must be cleaned up later. It never shrinks. Not thread-safe.
//
// A directory maps the first bits of a hash to a bucket. All hashes in a bucket
// share some first bits; if these are fewer bits than the directory uses,
// several of its entries lead to that bucket. A full bucket is split by one
// more bit. If the directory does not use that bit yet, it doubles, which
// copies one pointer for each entry. Within a bucket, the last bits of the hash
// say where to look first (linear probing).
class SteadyIndex {
 public:
  SteadyIndex() : directory_(1) {
    buckets_.push_back(std::make_unique<Bucket>());
    directory_[0] = buckets_[0].get();
  }

  // Returns a number that has this hash and for which `is_it` is true, or
  // kNone.
  template <typename F>
  uint32_t Find(uint64_t hash, F&& is_it) const {
    const uint32_t h = Shorten(hash);
    const Bucket& bucket = BucketOf(h);
    for (uint32_t i = h % kCells; bucket.cells[i].number != kNone;
         i = (i + 1) % kCells) {
      const Cell& cell = bucket.cells[i];
      if (cell.hash == h && is_it(cell.number)) return cell.number;
    }
    return kNone;
  }

  // REQUIRES: the number is not kNone and is not in the index.
  void Add(uint64_t hash, uint32_t number) {
    const uint32_t h = Shorten(hash);
    while (BucketOf(h).size >= kMostInBucket) Split(BucketOf(h));
    Put(BucketOf(h), {h, number});
    ++size_;
  }

  // REQUIRES: the number was added with this hash.
  void Remove(uint64_t hash, uint32_t number) {
    const uint32_t h = Shorten(hash);
    Bucket& bucket = BucketOf(h);
    uint32_t hole = CellOf(bucket, h, number);
    // Cells that follow without a gap move into the hole, unless that would be
    // before the place that their hash asks for.
    for (uint32_t i = (hole + 1) % kCells; bucket.cells[i].number != kNone;
         i = (i + 1) % kCells) {
      const uint32_t moved_by = (i - bucket.cells[i].hash) % kCells;
      if (moved_by < (i - hole) % kCells) continue;
      bucket.cells[hole] = bucket.cells[i];
      hole = i;
    }
    bucket.cells[hole].number = kNone;
    --bucket.size;
    --size_;
  }

  // Puts `other` in the place of a number. This moves nothing, so it is much
  // faster than Remove and Add. REQUIRES: the number was added with this hash;
  // `other` is not kNone and is not in the index.
  void Replace(uint64_t hash, uint32_t number, uint32_t other) {
    const uint32_t h = Shorten(hash);
    Bucket& bucket = BucketOf(h);
    bucket.cells[CellOf(bucket, h, number)].number = other;
  }

  // Prefetches what Find and Remove will read first.
  void Prefetch(uint64_t hash) const {
    const uint32_t h = Shorten(hash);
    __builtin_prefetch(&BucketOf(h).cells[h % kCells]);
  }

  size_t size() const { return size_; }
  size_t buckets() const { return buckets_.size(); }
  // The bytes of memory that it takes.
  size_t bytes() const {
    constexpr size_t kPointerBytes = sizeof(uintptr_t);
    return buckets_.size() * (sizeof(Bucket) + kPointerBytes) +
           directory_.size() * kPointerBytes;
  }

  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  static constexpr uint32_t kCells = 512;  // in a bucket

 private:
  // The limit keeps a gap near to each number. On average, a bucket is filled
  // to two thirds of it.
  static constexpr uint32_t kMostInBucket = kCells * 7 / 8;
  // A bucket needs more bits only if so many hashes are equal as cannot happen
  // by chance.
  static constexpr uint32_t kMostBits = 23;

  struct Cell {
    uint32_t hash = 0;
    uint32_t number = kNone;
  };
  struct Bucket {
    uint32_t bits = 0;  // how many first bits its hashes share
    uint32_t size = 0;
    std::array<Cell, kCells> cells;
  };

  static uint32_t Shorten(uint64_t hash) {
    return static_cast<uint32_t>(hash ^ (hash >> 32));
  }
  size_t EntryOf(uint32_t hash) const {
    return static_cast<size_t>(uint64_t{hash} >> (32 - bits_));
  }
  Bucket& BucketOf(uint32_t hash) const { return *directory_[EntryOf(hash)]; }

  static uint32_t CellOf(const Bucket& bucket, uint32_t hash, uint32_t number) {
    uint32_t i = hash % kCells;
    while (bucket.cells[i].number != number) {
      CHECK(bucket.cells[i].number != kNone);
      i = (i + 1) % kCells;
    }
    return i;
  }
  static void Put(Bucket& bucket, Cell cell) {
    uint32_t i = cell.hash % kCells;
    while (bucket.cells[i].number != kNone) i = (i + 1) % kCells;
    bucket.cells[i] = cell;
    ++bucket.size;
  }

  // Each entry of the directory becomes two.
  void DoubleDirectory() {
    std::vector<Bucket*> doubled(2 * directory_.size());
    for (size_t i = 0; i < doubled.size(); ++i) doubled[i] = directory_[i / 2];
    directory_.swap(doubled);
    ++bits_;
  }

  // Moves the half with the greater hashes to a new bucket.
  void Split(Bucket& bucket) {
    CHECK(bucket.bits < kMostBits);
    if (bucket.bits == bits_) DoubleDirectory();
    buckets_.push_back(std::make_unique<Bucket>());
    Bucket& greater = *buckets_.back();
    greater.bits = ++bucket.bits;
    const uint32_t bit = uint32_t{1} << (32 - bucket.bits);
    const std::array<Cell, kCells> cells = bucket.cells;
    bucket.cells.fill({});
    bucket.size = 0;
    uint32_t any_hash = 0;
    for (const Cell& cell : cells) {
      if (cell.number == kNone) continue;
      any_hash = cell.hash;
      Put((cell.hash & bit) != 0 ? greater : bucket, cell);
    }
    // The directory entries of the new bucket: their bits begin as `any_hash`
    // does, and then have `bit` set.
    const size_t entries = size_t{1} << (bits_ - bucket.bits);
    const size_t first = (EntryOf(any_hash | bit) / entries) * entries;
    for (size_t i = 0; i < entries; ++i) directory_[first + i] = &greater;
  }

  uint32_t bits_ = 0;  // how many first bits of a hash the directory uses
  std::vector<Bucket*> directory_;  // 2^bits_ entries
  std::vector<std::unique_ptr<Bucket>> buckets_;
  size_t size_ = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_NODES_STEADY_INDEX_H_
