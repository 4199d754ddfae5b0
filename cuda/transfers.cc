#include "cuda/transfers.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "cuda/driver.h"

namespace pando::cuda {
namespace {

CUdeviceptr AddressOf(const std::byte* memory) {
  return reinterpret_cast<CUdeviceptr>(memory);
}

}  // namespace

// Is made in steps; the destructor undoes those that were taken.
class Transfers::State {
 public:
  State(const Driver* driver, Device device)
      : driver_(*driver), device_(std::move(device)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  absl::Status Build(std::span<std::byte> host);
  absl::Status Begin(const Rows& rows, Direction direction);
  absl::Status Finish();

 private:
  absl::Status CopyRows(const Rows& rows, Direction direction) const;
  absl::Status CopyRow(const Rows& rows, uint64_t row,
                       Direction direction) const;

  const Driver& driver_;
  const Device device_;
  CUcontext context_ = nullptr;
  uint64_t max_pitch_ = 0;
  std::span<std::byte> pinned_;
  CUstream out_ = nullptr;
  CUstream in_ = nullptr;
};

absl::Status Transfers::State::Build(std::span<std::byte> host) {
  RETURN_IF_ERROR(
      ToStatus(driver_.cuDevicePrimaryCtxRetain(&context_, device_.ordinal),
               "cuDevicePrimaryCtxRetain", device_));
  ASSIGN_OR_RETURN(const ContextScope scope, ContextScope::Enter(device_));
  int max_pitch = 0;
  RETURN_IF_ERROR(
      ToStatus(driver_.cuDeviceGetAttribute(
                   &max_pitch, CU_DEVICE_ATTRIBUTE_MAX_PITCH, device_.ordinal),
               "cuDeviceGetAttribute", device_));
  max_pitch_ = static_cast<uint64_t>(max_pitch);
  RETURN_IF_ERROR(ToStatus(
      driver_.cuMemHostRegister(host.data(), host.size(), 0),
      absl::StrFormat("cuMemHostRegister of %u bytes", host.size()), device_));
  pinned_ = host;
  for (CUstream* const stream : {&out_, &in_}) {
    RETURN_IF_ERROR(
        ToStatus(driver_.cuStreamCreate(stream, CU_STREAM_NON_BLOCKING),
                 "cuStreamCreate", device_));
  }
  return absl::OkStatus();
}

// Nothing can be done about errors here.
Transfers::State::~State() {
  if (context_ == nullptr) return;
  if (const auto scope = ContextScope::Enter(device_); scope.ok()) {
    for (CUstream const stream : {out_, in_}) {
      if (stream == nullptr) continue;
      driver_.cuStreamSynchronize(stream);
      driver_.cuStreamDestroy(stream);
    }
    if (!pinned_.empty()) driver_.cuMemHostUnregister(pinned_.data());
  }
  driver_.cuDevicePrimaryCtxRelease(device_.ordinal);
}

absl::Status Transfers::State::Begin(const Rows& rows, Direction direction) {
  ASSIGN_OR_RETURN(const ContextScope scope, ContextScope::Enter(device_));
  // One call of the driver may only copy rows that lie so far apart.
  if (rows.device_pitch <= max_pitch_) return CopyRows(rows, direction);
  for (uint64_t i = 0; i < rows.count; ++i) {
    RETURN_IF_ERROR(CopyRow(rows, i, direction));
  }
  return absl::OkStatus();
}

absl::Status Transfers::State::CopyRows(const Rows& rows,
                                        Direction direction) const {
  CUDA_MEMCPY2D copy = {};
  copy.WidthInBytes = rows.row_bytes;
  copy.Height = rows.count;
  const bool is_to_device = direction == Direction::kToDevice;
  if (is_to_device) {
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = rows.host;
    copy.srcPitch = rows.row_bytes;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = AddressOf(rows.device);
    copy.dstPitch = rows.device_pitch;
  } else {
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = AddressOf(rows.device);
    copy.srcPitch = rows.device_pitch;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = rows.host;
    copy.dstPitch = rows.row_bytes;
  }
  return ToStatus(driver_.cuMemcpy2DAsync(&copy, is_to_device ? in_ : out_),
                  "cuMemcpy2DAsync", device_);
}

absl::Status Transfers::State::CopyRow(const Rows& rows, uint64_t row,
                                       Direction direction) const {
  std::byte* const host = rows.host + row * rows.row_bytes;
  const CUdeviceptr device = AddressOf(rows.device + row * rows.device_pitch);
  if (direction == Direction::kToDevice) {
    return ToStatus(
        driver_.cuMemcpyHtoDAsync(device, host, rows.row_bytes, in_),
        "cuMemcpyHtoDAsync", device_);
  }
  return ToStatus(driver_.cuMemcpyDtoHAsync(host, device, rows.row_bytes, out_),
                  "cuMemcpyDtoHAsync", device_);
}

absl::Status Transfers::State::Finish() {
  ASSIGN_OR_RETURN(const ContextScope scope, ContextScope::Enter(device_));
  for (CUstream const stream : {out_, in_}) {
    RETURN_IF_ERROR(ToStatus(driver_.cuStreamSynchronize(stream),
                             "cuStreamSynchronize", device_));
  }
  return absl::OkStatus();
}

Transfers::Transfers(std::unique_ptr<State> state) : state_(std::move(state)) {}
Transfers::~Transfers() = default;

absl::StatusOr<std::unique_ptr<Transfers>> Transfers::Make(
    const Device& device, std::span<std::byte> host) {
  ASSIGN_OR_RETURN(const Driver* const driver, LoadDriver());
  auto state = std::make_unique<State>(driver, device);
  RETURN_IF_ERROR(state->Build(host));
  return absl::WrapUnique(new Transfers(std::move(state)));
}

absl::Status Transfers::Begin(const Rows& rows, Direction direction) {
  return state_->Begin(rows, direction);
}
absl::Status Transfers::Finish() { return state_->Finish(); }

}  // namespace pando::cuda
