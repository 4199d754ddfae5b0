// The two calls that a request makes to the cache, in this process or through
// pandod.
#ifndef PANDO_REPLAY_CACHE_CALLS_H_
#define PANDO_REPLAY_CACHE_CALLS_H_

#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/trace.h"

namespace pando::replay {

// A prefix handle of the core or of the client library. It is a type of its
// own, because both libraries name theirs PrefixHandle.
struct Handle {
  uint64_t epoch = 0;
  uint64_t node = 0;
  uint32_t tokens = 0;
};

struct AdmitOptions {
  // The handle to begin at: it covers the first tokens of the prompt.
  Handle after = {};
  // Reserve room for this many tokens, counted from the start of the prompt.
  uint32_t reserve_tokens = 0;
  // How many tokens the answer will have. Only a cache in this process is told.
  uint32_t output_tokens = 0;
};

struct Admission {
  uint32_t matched_tokens = 0;
  // How many tokens at the start of the prompt were not sent, because the
  // handle covers them; 0 if the handle was gone.
  uint32_t skipped_tokens = 0;
  // The handle of the end of the match.
  Handle handle = {};
};

// Serves requests as an engine would, one at a time: Admit, then Finish. Owned
// by the worker; thread-compatible.
class CacheCalls {
 public:
  virtual ~CacheCalls() = default;

  virtual uint32_t page_tokens() const = 0;

  // Matches, locks and reserves in one call. Returns none if the pool is
  // exhausted. The last token is never matched, because an engine needs its
  // logits.
  virtual absl::StatusOr<std::optional<Admission>> Admit(
      std::span<const Token> prompt, const AdmitOptions& options) = 0;

  // In one call, publishes the rest of the admitted prompt, releases the lock
  // and frees unused pages. It sends no tokens, because the lock has held those
  // of the prompt since Admit. `has_ended` says that no later request continues
  // the prompt. Returns a handle of the end of the prompt.
  virtual absl::StatusOr<Handle> Finish(bool has_ended) = 0;
};

}  // namespace pando::replay

#endif  // PANDO_REPLAY_CACHE_CALLS_H_
