// The settings of a stand-in, which it reads from the environment of its
// process.
#ifndef PANDO_TESTS_SUPPORT_CUDA_STAND_IN_SETTINGS_H_
#define PANDO_TESTS_SUPPORT_CUDA_STAND_IN_SETTINGS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cuda_stand_in {

struct Fault {
  int result = 0;
  // The number of the call that fails, counted from 1. If it is 0, each call
  // fails.
  int only_call = 0;
};

struct Settings {
  // The GPUs that this process sees, in the order of its ordinals, by their
  // numbers on the machine. CUDA_STAND_IN_DEVICES is how many the machine has.
  // CUDA_VISIBLE_DEVICES=1,0 makes the process see only these two; without that
  // variable it sees all.
  std::vector<int> devices;
  // CUDA_STAND_IN_DEVICE_BYTES is the memory of each device.
  uint64_t device_bytes = uint64_t{1} << 30;
  // CUDA_STAND_IN_SHARES=0: no device can share memory by descriptors.
  bool shares = true;
  // CUDA_STAND_IN_PEERS=0: no device reaches the memory of another.
  bool has_peers = true;
  // CUDA_STAND_IN_RDMA=0: no device lets network cards reach its memory.
  bool has_rdma = true;
  // CUDA_STAND_IN_IGNORES_ADDRESSES=1: the driver never gives the address that
  // a caller asks for.
  bool ignores_addresses = false;
  // CUDA_STAND_IN_MAX_PITCH: how far apart the rows of one copy may lie.
  uint64_t max_pitch = (uint64_t{1} << 31) - 1;
  // CUDA_STAND_IN_MISSING=cuMemMap: cuGetProcAddress does not find this
  // function.
  std::string missing;
  // CUDA_STAND_IN_FAIL=cuMemCreate=2,cuMemMap=1@3: each call of cuMemCreate
  // returns 2, and the third call of cuMemMap returns 1.
  std::map<std::string, Fault> faults;
};

// Ends the process with a message if it cannot understand the environment.
Settings SettingsOfEnvironment();

}  // namespace cuda_stand_in

#endif  // PANDO_TESTS_SUPPORT_CUDA_STAND_IN_SETTINGS_H_
