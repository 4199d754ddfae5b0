#include "clients/python/native/copies.h"

#include <dlfcn.h>

#include <cstring>
#include <stdexcept>
#include <string>

namespace pando::python {
namespace {

// The parts of cuda.h that are needed here, because the wheel is built without
// it.
using Result = int;
using Device = int;
using Context = void*;
using Stream = void*;
using Address = unsigned long long;  // NOLINT(google-runtime-int)

struct Location {
  int type;
  int id;
};
struct CopyAttributes {
  int source_access_order;
  Location source_hint;
  Location target_hint;
  unsigned flags;
};

constexpr unsigned kNonBlockingStream = 1;
constexpr int kInStreamOrder = 1;
constexpr unsigned kOverlapWithKernels = 1;

// The functions of the driver, as CUDA 12 declares them.
struct Driver {
  Result (*init)(unsigned);
  Result (*error_words)(Result, const char**);
  Result (*retain)(Context*, Device);
  Result (*release)(Device);
  Result (*push)(Context);
  Result (*pop)(Context*);
  Result (*make_stream)(Stream*, unsigned);
  Result (*destroy_stream)(Stream);
  Result (*synchronize)(Stream);
  Result (*pin)(void*, size_t, unsigned);
  Result (*unpin)(void*);
  Result (*to_device)(Address, const void*, size_t, Stream);
  Result (*to_host)(void*, Address, size_t, Stream);
  // It is null in drivers before CUDA 12.8.
  Result (*batch)(Address* targets, Address* sources, size_t* sizes,
                  size_t count, CopyAttributes* attributes,
                  size_t* first_with_attributes, size_t attributes_count,
                  size_t* refused, Stream);
};

template <typename Function>
void Find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) {
    throw std::runtime_error(std::string("the CUDA driver has no ") + name +
                             "; a newer one is needed");
  }
}

// Finds a function in the form that it had in CUDA `version`; `function` is
// null if the driver does not have it. Later drivers have another function of
// this name, but still return the form that is asked for.
template <typename Function>
void FindAsOf(int version, void* library, const char* name,
              Function*& function) {
  Result (*find)(const char*, void**, int, uint64_t, int*) = nullptr;
  find =
      reinterpret_cast<decltype(find)>(dlsym(library, "cuGetProcAddress_v2"));
  void* found = nullptr;
  int why_not = 0;
  if (find != nullptr) find(name, &found, version, 0, &why_not);
  function = reinterpret_cast<Function*>(found);
}

Driver Load() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw std::runtime_error(
        std::string("no CUDA driver was found on this machine: ") + dlerror());
  }
  Driver driver;
  Find(library, "cuInit", driver.init);
  Find(library, "cuGetErrorString", driver.error_words);
  Find(library, "cuDevicePrimaryCtxRetain", driver.retain);
  Find(library, "cuDevicePrimaryCtxRelease_v2", driver.release);
  Find(library, "cuCtxPushCurrent_v2", driver.push);
  Find(library, "cuCtxPopCurrent_v2", driver.pop);
  Find(library, "cuStreamCreate", driver.make_stream);
  Find(library, "cuStreamDestroy_v2", driver.destroy_stream);
  Find(library, "cuStreamSynchronize", driver.synchronize);
  Find(library, "cuMemHostRegister_v2", driver.pin);
  Find(library, "cuMemHostUnregister", driver.unpin);
  Find(library, "cuMemcpyHtoDAsync_v2", driver.to_device);
  Find(library, "cuMemcpyDtoHAsync_v2", driver.to_host);
  FindAsOf(12080, library, "cuMemcpyBatchAsync", driver.batch);
  return driver;
}

const Driver& TheDriver() {
  static const Driver driver = Load();
  return driver;
}

void Check(Result result, const char* doing) {
  if (result == 0) return;
  const char* words = nullptr;
  TheDriver().error_words(result, &words);
  throw std::runtime_error(std::string(doing) + ": " +
                           (words == nullptr ? "unknown error" : words) + " (" +
                           std::to_string(result) + ")");
}

void CopyInOneCall(const CopyList& list, Stream stream) {
  // The casts are safe: the driver only reads these, although its declarations
  // do not say so.
  auto* const targets = const_cast<uint64_t*>(list.targets.data());
  auto* const sources = const_cast<uint64_t*>(list.sources.data());
  auto* const sizes = const_cast<uint64_t*>(list.sizes.data());
  static_assert(sizeof(Address) == sizeof(uint64_t));
  static_assert(sizeof(size_t) == sizeof(uint64_t));
  CopyAttributes attributes = {.source_access_order = kInStreamOrder,
                               .source_hint = {},
                               .target_hint = {},
                               .flags = kOverlapWithKernels};
  size_t first_with_attributes = 0;
  size_t refused = 0;
  Check(TheDriver().batch(reinterpret_cast<Address*>(targets),
                          reinterpret_cast<Address*>(sources),
                          reinterpret_cast<size_t*>(sizes), list.sizes.size(),
                          &attributes, &first_with_attributes, 1, &refused,
                          stream),
        "cuMemcpyBatchAsync");
}

void CopyOneByOne(const CopyList& list, CudaCopier::Direction direction,
                  Stream stream) {
  const Driver& driver = TheDriver();
  for (size_t i = 0; i < list.sizes.size(); ++i) {
    const uint64_t target = list.targets[i];
    const uint64_t source = list.sources[i];
    if (direction == CudaCopier::Direction::kToDevice) {
      Check(driver.to_device(target, reinterpret_cast<const void*>(source),
                             list.sizes[i], stream),
            "cuMemcpyHtoDAsync");
    } else {
      Check(driver.to_host(reinterpret_cast<void*>(target), source,
                           list.sizes[i], stream),
            "cuMemcpyDtoHAsync");
    }
  }
}

}  // namespace

void CopyOnHost(const CopyList& list) {
  for (size_t i = 0; i < list.sizes.size(); ++i) {
    std::memcpy(reinterpret_cast<void*>(list.targets[i]),
                reinterpret_cast<const void*>(list.sources[i]), list.sizes[i]);
  }
}

// Makes the device's primary context current on this thread, as long as it
// lives.
class CudaCopier::WithContext {
 public:
  explicit WithContext(Context context) {
    Check(TheDriver().push(context), "cuCtxPushCurrent");
  }
  ~WithContext() {
    Context popped;
    TheDriver().pop(&popped);
  }
};

CudaCopier::CudaCopier(int device) : device_(device) {
  const Driver& driver = TheDriver();
  Check(driver.init(0), "cuInit");
  Check(driver.retain(&context_, device), "cuDevicePrimaryCtxRetain");
  try {
    const WithContext current(context_);
    Check(driver.make_stream(&stream_, kNonBlockingStream), "cuStreamCreate");
  } catch (...) {
    driver.release(device_);
    throw;
  }
}

CudaCopier::~CudaCopier() {
  TheDriver().destroy_stream(stream_);
  TheDriver().release(device_);
}

void CudaCopier::Copy(const CopyList& list, Direction direction) {
  if (list.sizes.empty()) return;
  const WithContext current(context_);
  if (is_batched()) {
    CopyInOneCall(list, stream_);
  } else {
    CopyOneByOne(list, direction, stream_);
  }
  Check(TheDriver().synchronize(stream_), "cuStreamSynchronize");
}

void CudaCopier::Pin(uint64_t address, size_t size) {
  const WithContext current(context_);
  Check(TheDriver().pin(reinterpret_cast<void*>(address), size, 0),
        "cuMemHostRegister");
}

void CudaCopier::Unpin(uint64_t address) {
  const WithContext current(context_);
  Check(TheDriver().unpin(reinterpret_cast<void*>(address)),
        "cuMemHostUnregister");
}

bool CudaCopier::is_batched() const { return TheDriver().batch != nullptr; }

}  // namespace pando::python
