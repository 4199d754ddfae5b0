#include "cuda/device.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "cuda/driver.h"

namespace pando::cuda {
namespace {

// Writes a UUID as nvidia-smi does: 8-4-4-4-12 hexadecimal digits.
std::string UuidText(const CUuuid& uuid) {
  std::string text;
  for (size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    absl::StrAppendFormat(&text, "%02x",
                          static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

absl::StatusOr<std::vector<Device>> ListDevices(const Driver& driver) {
  int count = 0;
  RETURN_IF_ERROR(
      ToStatus(driver.cuDeviceGetCount(&count), "cuDeviceGetCount", Device()));
  std::vector<Device> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    Device device = {.ordinal = ordinal, .uuid = ""};
    CUuuid uuid;
    RETURN_IF_ERROR(ToStatus(driver.cuDeviceGetUuid(&uuid, ordinal),
                             "cuDeviceGetUuid", device));
    device.uuid = UuidText(uuid);
    devices.push_back(std::move(device));
  }
  return devices;
}

std::string UuidIn(const std::string& name) {
  absl::string_view uuid = name;
  if (!absl::ConsumePrefix(&uuid, "GPU-")) absl::ConsumePrefix(&uuid, "MIG-");
  return absl::AsciiStrToLower(uuid);
}

}  // namespace

std::string ToString(const Device& device) {
  if (device.uuid.empty()) return absl::StrFormat("GPU %d", device.ordinal);
  return absl::StrFormat("GPU %d (%s)", device.ordinal, device.uuid);
}

absl::StatusOr<Device> FindDevice(const std::string& name) {
  ASSIGN_OR_RETURN(const Driver* const driver, LoadDriver());
  ASSIGN_OR_RETURN(const std::vector<Device> devices, ListDevices(*driver));
  int ordinal = -1;
  const bool is_ordinal = absl::SimpleAtoi(name, &ordinal);
  for (const Device& device : devices) {
    if (is_ordinal ? device.ordinal == ordinal : device.uuid == UuidIn(name)) {
      return device;
    }
  }
  return absl::NotFoundError(absl::StrFormat(
      "no GPU is '%s'; there are: %s", name,
      absl::StrJoin(devices, ", ", [](std::string* out, const Device& device) {
        absl::StrAppendFormat(out, "%d GPU-%s", device.ordinal, device.uuid);
      })));
}

absl::StatusOr<uint64_t> TotalBytes(const Device& device) {
  ASSIGN_OR_RETURN(const Driver* const driver, LoadDriver());
  size_t bytes = 0;
  RETURN_IF_ERROR(ToStatus(driver->cuDeviceTotalMem(&bytes, device.ordinal),
                           "cuDeviceTotalMem", device));
  return bytes;
}

absl::StatusOr<uint64_t> FreeBytes(const Device& device) {
  ASSIGN_OR_RETURN(const Driver* const driver, LoadDriver());
  ASSIGN_OR_RETURN(const ContextScope context, ContextScope::Enter(device));
  size_t free = 0;
  size_t total = 0;
  RETURN_IF_ERROR(
      ToStatus(driver->cuMemGetInfo(&free, &total), "cuMemGetInfo", device));
  return free;
}

}  // namespace pando::cuda
