#include "replay/made_up_trace.h"

#include <algorithm>
#include <limits>

#include "absl/random/random.h"

namespace pando::replay {

Trace MakeUpTrace(const MadeUpChats& chats) {
  const uint32_t shared = chats.system_prompt_tokens;
  const uint32_t block_tokens = shared > 0 ? shared : chats.prompt_tokens;
  const uint32_t blocks = (chats.prompt_tokens - 1) / block_tokens + 1;
  const uint32_t own_blocks = blocks - (shared > 0 ? 1 : 0);
  absl::BitGen random;
  const auto first_id =
      absl::Uniform<uint32_t>(random, 0, std::numeric_limits<int32_t>::max());
  uint32_t next_id = first_id + chats.system_prompts;

  Trace trace{.block_tokens = block_tokens};
  for (uint32_t i = 0; i < chats.requests; ++i) {
    TraceRequest request{.input_tokens = chats.prompt_tokens};
    if (shared > 0) {
      request.block_ids.push_back(
          first_id + absl::Uniform(random, 0u, chats.system_prompts));
    }
    for (uint32_t b = 0; b < own_blocks; ++b) {
      request.block_ids.push_back(next_id++);
    }
    trace.requests.push_back(std::move(request));
  }
  return trace;
}

}  // namespace pando::replay
