#include "tests/support/cuda_stand_in/settings.h"

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <sstream>

namespace cuda_stand_in {
namespace {

std::string Variable(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

uint64_t Number(const char* name, const char* otherwise) {
  return std::stoull(Variable(name, otherwise));
}

std::map<std::string, Fault> FaultsIn(const std::string& text) {
  std::map<std::string, Fault> faults;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    char function[64] = "";
    Fault fault;
    if (std::sscanf(word.c_str(), "%63[^=]=%d@%d", function, &fault.result,
                    &fault.only_call) < 2) {
      std::fprintf(stderr, "CUDA_STAND_IN_FAIL: what is '%s'?\n", word.c_str());
      std::abort();
    }
    faults[function] = fault;
  }
  return faults;
}

std::vector<int> VisibleDevices() {
  const int count = static_cast<int>(Number("CUDA_STAND_IN_DEVICES", "2"));
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 0);
  if (std::getenv("CUDA_VISIBLE_DEVICES") == nullptr) return all;
  std::vector<int> visible;
  std::istringstream numbers(Variable("CUDA_VISIBLE_DEVICES", ""));
  for (std::string number; std::getline(numbers, number, ',');) {
    visible.push_back(all.at(std::stoul(number)));
  }
  return visible;
}

}  // namespace

Settings SettingsOfEnvironment() {
  return {
      .devices = VisibleDevices(),
      .device_bytes = Number("CUDA_STAND_IN_DEVICE_BYTES", "1073741824"),
      .shares = Number("CUDA_STAND_IN_SHARES", "1") != 0,
      .has_peers = Number("CUDA_STAND_IN_PEERS", "1") != 0,
      .has_rdma = Number("CUDA_STAND_IN_RDMA", "1") != 0,
      .ignores_addresses = Number("CUDA_STAND_IN_IGNORES_ADDRESSES", "0") != 0,
      .max_pitch = Number("CUDA_STAND_IN_MAX_PITCH", "2147483647"),
      .missing = Variable("CUDA_STAND_IN_MISSING", ""),
      .faults = FaultsIn(Variable("CUDA_STAND_IN_FAIL", "")),
  };
}

}  // namespace cuda_stand_in
