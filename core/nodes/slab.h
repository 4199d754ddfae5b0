#ifndef PANDO_CORE_NODES_SLAB_H_
#define PANDO_CORE_NODES_SLAB_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"

namespace pando {

// Holds objects of one type in blocks of fixed size, so that their addresses
// are stable and no object needs an allocation of its own. An object stays in
// its cell for life. Its handle is never 0, and becomes invalid when the object
// is deleted: it contains the generation of the cell, which is odd while the
// cell is in use. Constness is shallow, as with pointers: a const slab gives
// access to objects that may be changed. Not thread-safe.
template <typename T>
class Slab {
 public:
  using Handle = uint64_t;

  Slab() : Slab(nullptr) {}
  // `newest`, if it is given, is the highest generation of all cells so far. If
  // it is in memory that outlives the process, a handle of one process never
  // names an object of the next one. It outlives this.
  explicit Slab(uint32_t* newest)
      : newest_(newest == nullptr ? &own_newest_ : newest),
        first_generation_(*newest_ + *newest_ % 2) {}
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  ~Slab() {
    ForEach([this](T& object) { Delete(HandleOf(object)); });
  }

  // Makes an object from `args`.
  template <typename... Args>
  T& New(Args&&... args) {
    if (first_free_ == kNone) Grow();
    Cell& cell = At(first_free_);
    first_free_ = cell.next_free;
    T* object = std::construct_at(&cell.object, std::forward<Args>(args)...);
    ++cell.generation;
    if (cell.generation > *newest_) *newest_ = cell.generation;
    ++size_;
    return *object;
  }

  // Makes the objects that had these handles in an earlier process. REQUIRES:
  // nothing was made before; CanRestore is true for each handle, and no two
  // name the same cell.
  void Restore(std::span<const Handle> handles) {
    for (Handle handle : handles) {
      while (IndexIn(handle) >= cells()) Grow();
      Cell& cell = At(IndexIn(handle));
      std::construct_at(&cell.object);
      cell.generation = GenerationIn(handle);
      ++size_;
    }
    first_free_ = kNone;
    for (uint32_t i = cells(); i-- > 0;) {
      if (At(i).generation % 2 == 0) Free(At(i));
    }
  }
  // Whether an earlier process can have had an object with this handle.
  bool CanRestore(Handle handle) const {
    return GenerationIn(handle) % 2 == 1 &&
           GenerationIn(handle) <= first_generation_;
  }

  // Returns the object of `handle`, or null if it was deleted or never existed.
  T* Find(Handle handle) const {
    const uint32_t index = IndexIn(handle);
    const uint32_t generation = GenerationIn(handle);
    if (index >= blocks_.size() * kBlockCells || generation % 2 == 0) {
      return nullptr;
    }
    Cell& cell = At(index);
    return cell.generation == generation ? &cell.object : nullptr;
  }

  // REQUIRES: `object` lives in this slab.
  static Handle HandleOf(const T& object) {
    const Cell& cell = reinterpret_cast<const Cell&>(object);
    return static_cast<Handle>(cell.generation) << 32 | cell.index;
  }
  // The cell that a handle names.
  static uint32_t IndexIn(Handle handle) {
    return static_cast<uint32_t>(handle);
  }
  // The cell of an object, which it never leaves.
  static uint32_t IndexOf(const T& object) {
    return reinterpret_cast<const Cell&>(object).index;
  }

  // The object in a cell, or null. REQUIRES: index < cells().
  T* FindAt(uint32_t index) const {
    Cell& cell = At(index);
    return cell.generation % 2 == 1 ? &cell.object : nullptr;
  }
  // The number of cells, used or not. It never shrinks.
  uint32_t cells() const { return blocks() * kBlockCells; }

  // REQUIRES: `handle` names a live object.
  void Delete(Handle handle) {
    T* object = Find(handle);
    CHECK(object != nullptr);
    std::destroy_at(object);
    Cell& cell = reinterpret_cast<Cell&>(*object);
    ++cell.generation;
    Free(cell);
    --size_;
  }

  template <typename F>
  void ForEach(F&& visit) const {
    for (uint32_t block = 0; block < blocks(); ++block) {
      ForEachOfBlock(block, visit);
    }
  }
  // The same for one block of kBlockCells cells; an object stays in its block.
  // REQUIRES: block < blocks().
  template <typename F>
  void ForEachOfBlock(uint32_t block, F&& visit) const {
    for (uint32_t i = 0; i < kBlockCells; ++i) {
      Cell& cell = blocks_[block][i];
      if (cell.generation % 2 == 1) visit(cell.object);
    }
  }

  uint32_t blocks() const { return static_cast<uint32_t>(blocks_.size()); }
  uint32_t size() const { return size_; }

  static constexpr uint32_t kBlockCells = 256;

 private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  // The object comes first, so that its address is the cell's address.
  struct Cell {
    Cell() {}
    ~Cell() {}
    union {
      T object;
      uint32_t next_free;  // while there is no object
    };
    uint32_t index = 0;
    uint32_t generation = 0;
  };

  static uint32_t GenerationIn(Handle handle) {
    return static_cast<uint32_t>(handle >> 32);
  }

  Cell& At(uint32_t index) const {
    return blocks_[index / kBlockCells][index % kBlockCells];
  }

  void Grow() {
    const auto first = static_cast<uint32_t>(blocks_.size()) * kBlockCells;
    blocks_.push_back(std::make_unique<Cell[]>(kBlockCells));
    for (uint32_t i = kBlockCells; i-- > 0;) {
      Cell& cell = blocks_.back()[i];
      cell.index = first + i;
      cell.generation = first_generation_;
      Free(cell);
    }
  }

  // The list of free cells is in the cells: a list of its own would be copied
  // as it grows, in the middle of a delete.
  void Free(Cell& cell) {
    cell.next_free = first_free_;
    first_free_ = cell.index;
  }

  uint32_t own_newest_ = 0;
  uint32_t* const newest_;
  const uint32_t first_generation_;
  std::vector<std::unique_ptr<Cell[]>> blocks_;
  uint32_t first_free_ = kNone;
  uint32_t size_ = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_NODES_SLAB_H_
