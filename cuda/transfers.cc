#include "cuda/transfers.h"

#include <deque>
#include <utility>
#include <vector>

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

// Build takes several steps; the destructor undoes those that were taken.
class Transfers::State {
 public:
  State(const Driver* driver, Device device)
      : driver_(*driver), device_(std::move(device)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  absl::Status Build(std::span<std::byte> host);
  absl::Status Begin(const Rows& rows, Direction direction);
  absl::Status MarkEnd(Direction direction, uint64_t mark);
  absl::StatusOr<std::vector<uint64_t>> TakeReached();

 private:
  // The stream of one direction, and its marks that were not reached yet.
  struct Stream {
    struct End {
      CUevent event;
      uint64_t mark;
    };

    CUstream stream = nullptr;
    std::deque<End> ends;
  };

  absl::Status CopyRows(const Rows& rows, Direction direction);
  absl::Status CopyRow(const Rows& rows, uint64_t row, Direction direction);
  // Returns whether the first mark is reached, and if so removes it.
  absl::StatusOr<bool> TakeFirst(std::deque<Stream::End>& ends);

  const Driver& driver_;
  const Device device_;
  CUcontext context_ = nullptr;
  uint64_t max_pitch_ = 0;
  std::span<std::byte> pinned_;
  Stream& StreamOf(Direction direction) {
    return direction == Direction::kToDevice ? in_ : out_;
  }

  Stream out_;
  Stream in_;
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
  for (Stream* const each : {&out_, &in_}) {
    RETURN_IF_ERROR(
        ToStatus(driver_.cuStreamCreate(&each->stream, CU_STREAM_NON_BLOCKING),
                 "cuStreamCreate", device_));
  }
  return absl::OkStatus();
}

// Errors are ignored here, because nothing can be done about them.
Transfers::State::~State() {
  if (context_ == nullptr) return;
  if (const auto scope = ContextScope::Enter(device_); scope.ok()) {
    for (const Stream* const each : {&out_, &in_}) {
      if (each->stream == nullptr) continue;
      driver_.cuStreamSynchronize(each->stream);
      for (const Stream::End& end : each->ends) {
        driver_.cuEventDestroy(end.event);
      }
      driver_.cuStreamDestroy(each->stream);
    }
    if (!pinned_.empty()) driver_.cuMemHostUnregister(pinned_.data());
  }
  driver_.cuDevicePrimaryCtxRelease(device_.ordinal);
}

absl::Status Transfers::State::Begin(const Rows& rows, Direction direction) {
  ASSIGN_OR_RETURN(const ContextScope scope, ContextScope::Enter(device_));
  // One call of the driver can copy several rows only if they lie no more than
  // max_pitch_ apart; otherwise each row takes a call.
  if (rows.device_pitch <= max_pitch_) return CopyRows(rows, direction);
  for (uint64_t i = 0; i < rows.count; ++i) {
    RETURN_IF_ERROR(CopyRow(rows, i, direction));
  }
  return absl::OkStatus();
}

absl::Status Transfers::State::CopyRows(const Rows& rows, Direction direction) {
  CUDA_MEMCPY2D copy = {};
  copy.WidthInBytes = rows.row_bytes;
  copy.Height = rows.count;
  if (direction == Direction::kToDevice) {
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
  return ToStatus(driver_.cuMemcpy2DAsync(&copy, StreamOf(direction).stream),
                  "cuMemcpy2DAsync", device_);
}

absl::Status Transfers::State::CopyRow(const Rows& rows, uint64_t row,
                                       Direction direction) {
  std::byte* const host = rows.host + row * rows.row_bytes;
  const CUdeviceptr device = AddressOf(rows.device + row * rows.device_pitch);
  CUstream const stream = StreamOf(direction).stream;
  if (direction == Direction::kToDevice) {
    return ToStatus(
        driver_.cuMemcpyHtoDAsync(device, host, rows.row_bytes, stream),
        "cuMemcpyHtoDAsync", device_);
  }
  return ToStatus(
      driver_.cuMemcpyDtoHAsync(host, device, rows.row_bytes, stream),
      "cuMemcpyDtoHAsync", device_);
}

absl::Status Transfers::State::MarkEnd(Direction direction, uint64_t mark) {
  ASSIGN_OR_RETURN(const ContextScope scope, ContextScope::Enter(device_));
  Stream& in_direction = StreamOf(direction);
  CUevent event = nullptr;
  RETURN_IF_ERROR(
      ToStatus(driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING),
               "cuEventCreate", device_));
  in_direction.ends.push_back({.event = event, .mark = mark});
  return ToStatus(driver_.cuEventRecord(event, in_direction.stream),
                  "cuEventRecord", device_);
}

absl::StatusOr<bool> Transfers::State::TakeFirst(
    std::deque<Stream::End>& ends) {
  CUevent const event = ends.front().event;
  const CUresult result = driver_.cuEventQuery(event);
  if (result == CUDA_ERROR_NOT_READY) return false;
  RETURN_IF_ERROR(ToStatus(result, "cuEventQuery", device_));
  driver_.cuEventDestroy(event);
  ends.pop_front();
  return true;
}

absl::StatusOr<std::vector<uint64_t>> Transfers::State::TakeReached() {
  ASSIGN_OR_RETURN(const ContextScope scope, ContextScope::Enter(device_));
  std::vector<uint64_t> reached;
  for (Stream* const each : {&out_, &in_}) {
    while (!each->ends.empty()) {
      const uint64_t mark = each->ends.front().mark;
      ASSIGN_OR_RETURN(const bool is_reached, TakeFirst(each->ends));
      if (!is_reached) break;
      reached.push_back(mark);
    }
  }
  return reached;
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
absl::Status Transfers::MarkEnd(Direction direction, uint64_t mark) {
  return state_->MarkEnd(direction, mark);
}
absl::StatusOr<std::vector<uint64_t>> Transfers::TakeReached() {
  return state_->TakeReached();
}

}  // namespace pando::cuda
