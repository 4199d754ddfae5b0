#ifndef PANDO_CLIENTS_PYTHON_NATIVE_COPIES_H_
#define PANDO_CLIENTS_PYTHON_NATIVE_COPIES_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace pando::python {

// Pieces of memory to copy: as many addresses on either side as sizes.
struct CopyList {
  std::span<const uint64_t> targets;
  std::span<const uint64_t> sources;
  std::span<const uint64_t> sizes;
};

void CopyOnHost(const CopyList& list);

// Copies between host memory and one GPU, on a stream of its own. Loads the
// CUDA driver when it is made: this library is not linked to it. One thread at
// a time may use it. Throws std::runtime_error with the driver's words.
class CudaCopier {
 public:
  enum class Direction { kToDevice, kToHost };

  explicit CudaCopier(int device);
  CudaCopier(const CudaCopier&) = delete;
  CudaCopier& operator=(const CudaCopier&) = delete;
  ~CudaCopier();

  // Returns when the bytes are there. One call of the driver for the whole list
  // where it can (CUDA 12.8 and later), else one for each piece.
  void Copy(const CopyList& list, Direction direction);

  // Makes host memory such that the GPU reads and writes it by itself.
  void Pin(uint64_t address, size_t size);
  void Unpin(uint64_t address);

  bool is_batched() const;

 private:
  class WithContext;

  int device_;
  void* context_ = nullptr;
  void* stream_ = nullptr;
};

}  // namespace pando::python

#endif  // PANDO_CLIENTS_PYTHON_NATIVE_COPIES_H_
