// The settings of a stand-in, in the environment of its process.
#ifndef PANDO_TESTS_SUPPORT_CUDA_STAND_IN_SETTINGS_H_
#define PANDO_TESTS_SUPPORT_CUDA_STAND_IN_SETTINGS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cuda_stand_in {

struct Fault {
  int result = 0;
  // The call that fails, counted from 1; 0: each.
  int only_call = 0;
};

struct Settings {
  // The GPUs that this process sees, by their numbers on the machine, in the
  // order of its own ordinals: of the CUDA_STAND_IN_DEVICES that there seem to
  // be those that CUDA_VISIBLE_DEVICES=1,0 names, or all.
  std::vector<int> devices;
  // CUDA_STAND_IN_DEVICE_BYTES: the memory of each.
  uint64_t device_bytes = uint64_t{1} << 30;
  // CUDA_STAND_IN_SHARES=0: no device can share memory by descriptors.
  bool shares = true;
  // CUDA_STAND_IN_PEERS=0: no device reaches the memory of another.
  bool has_peers = true;
  // CUDA_STAND_IN_RDMA=0: no device lets network cards reach its memory.
  bool has_rdma = true;
  // CUDA_STAND_IN_IGNORES_ADDRESSES=1: an address that is asked for is not
  // given.
  bool ignores_addresses = false;
  // CUDA_STAND_IN_MAX_PITCH: how far apart rows of one copy may lie.
  uint64_t max_pitch = (uint64_t{1} << 31) - 1;
  // CUDA_STAND_IN_MISSING=cuMemMap: a function that cuGetProcAddress does not
  // find.
  std::string missing;
  // CUDA_STAND_IN_FAIL=cuMemCreate=2,cuMemMap=1@3: each cuMemCreate returns 2,
  // the third cuMemMap 1.
  std::map<std::string, Fault> faults;
};

// Ends the process with a sentence if the environment cannot be understood.
Settings SettingsOfEnvironment();

}  // namespace cuda_stand_in

#endif  // PANDO_TESTS_SUPPORT_CUDA_STAND_IN_SETTINGS_H_
