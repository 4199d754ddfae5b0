#include "bench/gpu/page_rates.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "bench/gpu/device_buffer.h"
#include "bench/gpu/read_ceiling.h"
#include "gpu/page_checksum.h"
#include "gpu/page_copy.h"
#include "gpu/page_staging.h"

namespace pando {
namespace {

using Place = Buffer::Place;

// The size of a device buffer of the staging.
constexpr uint64_t kChunkBytes = uint64_t{16} << 20;

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(EXIT_FAILURE);
}

std::vector<uint32_t> RandomPages(uint32_t capacity, uint32_t count) {
  std::vector<uint32_t> pages(capacity);
  std::iota(pages.begin(), pages.end(), 0);
  std::shuffle(pages.begin(), pages.end(), std::mt19937(1));
  pages.resize(count);
  return pages;
}

// Prints the rate at which `bytes` were moved; `ceiling` is what the device can
// do.
void PrintRow(const char* name, uint64_t bytes, double seconds,
              const char* ceiling_name, double ceiling_seconds) {
  const auto gigabytes = static_cast<double>(bytes) / 1e9;
  std::printf("  %-28s %8.1f GB/s  %5.1f %% of %s, %.1f GB/s\n", name,
              gigabytes / seconds, 100 * ceiling_seconds / seconds,
              ceiling_name, gigabytes / ceiling_seconds);
}

}  // namespace

void PrintPageRates(const KvShape& shape, uint32_t pages) {
  const uint32_t capacity = 2 * pages;
  const KvLayout layout = MakeKvLayout(shape, capacity).value();
  const uint64_t bytes = PageBytes(layout) * pages;
  Buffer pool(Place::kDevice, PoolBytes(layout, capacity));
  Buffer buffer(Place::kDevice, bytes);
  Buffer other(Place::kDevice, bytes);
  Buffer host(Place::kHost, bytes);
  Buffer ids(Place::kDevice, pages * sizeof(uint32_t));
  Buffer checksums(Place::kDevice, pages * sizeof(uint64_t));
  const std::vector<uint32_t> order = RandomPages(capacity, pages);
  Check(cudaMemcpy(ids.data(), order.data(), pages * sizeof(uint32_t),
                   cudaMemcpyHostToDevice),
        "cudaMemcpy");
  const PageMemory in_pool = {layout, pool.data(),
                              reinterpret_cast<uint32_t*>(ids.data())};
  const PageMemory in_buffer = PageBuffer(layout, buffer.data());
  cudaStream_t stream;
  Check(cudaStreamCreate(&stream), "cudaStreamCreate");
  const auto memcpy_seconds = [&](std::byte* to, const std::byte* from) {
    return SecondsOf(stream, [&] {
      Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream),
            "cudaMemcpyAsync");
    });
  };

  std::printf("%u pages of %llu bytes, %llu in each layer, %s\n", pages,
              static_cast<unsigned long long>(PageBytes(layout)),
              static_cast<unsigned long long>(PageBytes(layout) / shape.layers),
              std::string(LayoutOrderName(shape.order)).c_str());
  const double copy = memcpy_seconds(other.data(), buffer.data());
  const double gather = SecondsOf(
      stream, [&] { Check(CopyPages(in_pool, in_buffer, pages, stream)); });
  const double scatter = SecondsOf(
      stream, [&] { Check(CopyPages(in_buffer, in_pool, pages, stream)); });
  PrintRow("gather, read + written", 2 * bytes, gather, "a copy", copy);
  PrintRow("scatter, read + written", 2 * bytes, scatter, "a copy", copy);

  auto* const sums = reinterpret_cast<uint64_t*>(checksums.data());
  const double read = SecondsOf(stream, [&] {
    ReadAll(buffer.data(), bytes, reinterpret_cast<uint32_t*>(sums), stream);
  });
  const double checksum = SecondsOf(
      stream, [&] { Check(ChecksumPages(in_pool, pages, sums, stream)); });
  PrintRow("checksum, read", bytes, checksum, "a read", read);

  const auto chunk_pages = static_cast<uint32_t>(
      std::max<uint64_t>(1, kChunkBytes / PageBytes(layout)));
  const auto staging = PageStaging::Create(layout, chunk_pages).value();
  const double down = memcpy_seconds(host.data(), buffer.data());
  const double up = memcpy_seconds(buffer.data(), host.data());
  const double to_host = SecondsOf(stream, [&] {
    Check(staging->ToHost(in_pool, pages, host.data(), stream));
  });
  const double to_device = SecondsOf(stream, [&] {
    Check(staging->ToDevice(host.data(), in_pool, pages, stream));
  });
  PrintRow("to the host", bytes, to_host, "a pinned copy", down);
  PrintRow("to the device", bytes, to_device, "a pinned copy", up);
  Check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  cudaStreamDestroy(stream);
}

}  // namespace pando
