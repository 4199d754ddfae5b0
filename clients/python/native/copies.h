#ifndef PANDO_CLIENTS_PYTHON_NATIVE_COPIES_H_
#define PANDO_CLIENTS_PYTHON_NATIVE_COPIES_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace pando::python {

// Pieces of memory to copy. There is a target, a source and a size in bytes for
// each.
struct CopyList {
  std::span<const uint64_t> targets;
  std::span<const uint64_t> sources;
  std::span<const uint64_t> sizes;
};

// Copies between pieces of host memory.
void CopyOnHost(const CopyList& list);

// Copies between host memory and one GPU, on a CUDA stream of its own. The
// constructor loads the CUDA driver, because this library is not linked to it.
// For one thread at a time. Throws std::runtime_error with the driver's message
// when a call of the driver fails.
class CudaCopier {
 public:
  enum class Direction { kToDevice, kToHost };

  explicit CudaCopier(int device);
  CudaCopier(const CudaCopier&) = delete;
  CudaCopier& operator=(const CudaCopier&) = delete;
  ~CudaCopier();

  // Copies, and returns when all bytes are there. Makes one call of the driver
  // for the whole list if it can (CUDA 12.8 and later), else one for each
  // piece.
  void Copy(const CopyList& list, Direction direction);

  // Pins host memory, so that the GPU reads and writes it directly.
  void Pin(uint64_t address, size_t size);
  void Unpin(uint64_t address);

  // Returns whether Copy makes one call for the whole list.
  bool is_batched() const;

 private:
  class WithContext;

  int device_;
  void* context_ = nullptr;
  void* stream_ = nullptr;
};

}  // namespace pando::python

#endif  // PANDO_CLIENTS_PYTHON_NATIVE_COPIES_H_
