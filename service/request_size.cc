#include "service/request_size.h"

#include <algorithm>
#include <cstdint>

#include "base/ids.h"
#include "core/requests/block_requests.h"

namespace pando {
namespace {

// Room for the fields beside the long lists, and for entries above the limit.
constexpr int64_t kMoreBytes = int64_t{1} << 20;

}  // namespace

int MaxReceiveBytes(const Options& options) {
  const int64_t max_tokens = options.max_tokens_per_request;
  const int64_t max_pages = max_tokens / options.page_tokens + 1;
  const int64_t bytes = max_tokens * int64_t{sizeof(Token)} +
                        2 * max_pages * int64_t{sizeof(PageId)};
  const int64_t key_bytes =
      options.memory > 0 ? int64_t{kMaxBlockKeys} * kMaxKeyBytes : 0;
  return static_cast<int>(
      std::min<int64_t>(std::max(bytes, key_bytes) + kMoreBytes, INT32_MAX));
}

}  // namespace pando
