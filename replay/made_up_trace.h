#ifndef PANDO_REPLAY_MADE_UP_TRACE_H_
#define PANDO_REPLAY_MADE_UP_TRACE_H_

#include <cstdint>

#include "replay/trace.h"

namespace pando::replay {

// The traffic of a chat service: each prompt begins with one of a few system
// prompts, and continues with tokens of its own.
struct MadeUpChats {
  uint32_t requests = 2000;
  uint32_t prompt_tokens = 2048;
  uint32_t system_prompts = 16;
  // At most prompt_tokens. If it is zero, prompts share nothing.
  uint32_t system_prompt_tokens = 1024;
};

// Makes a trace. Its tokens are random and differ each time, so that none of
// them is cached before.
Trace MakeUpTrace(const MadeUpChats& chats);

}  // namespace pando::replay

#endif  // PANDO_REPLAY_MADE_UP_TRACE_H_
