// The two calls of a request, however they reach the cache.
#ifndef PANDO_REPLAY_CACHE_CALLS_H_
#define PANDO_REPLAY_CACHE_CALLS_H_

#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/trace.h"

namespace pando::replay {

// A prefix handle of the core or of the client library; a type of its own,
// because the two libraries use the same name.
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
  // How long the answer will be; only a cache in this process is told.
  uint32_t output_tokens = 0;
};

struct Admission {
  uint32_t matched_tokens = 0;
  // How many tokens at the start of the prompt were not sent: 0 if the handle
  // was gone.
  uint32_t skipped_tokens = 0;
  // Where the match ended.
  Handle handle = {};
};

// Serves requests as an engine would, one at a time: Admit, then Finish. Owned
// by the worker; thread-compatible.
class CacheCalls {
 public:
  virtual ~CacheCalls() = default;

  virtual uint32_t page_tokens() const = 0;

  // Matches, locks and reserves in one call. None: the pool is exhausted. The
  // last token is never matched, because an engine needs its logits.
  virtual absl::StatusOr<std::optional<Admission>> Admit(
      std::span<const Token> prompt, const AdmitOptions& options) = 0;

  // In one call: publishes the rest of the admitted prompt, whose tokens the
  // lock holds since Admit, releases the lock and frees unused pages.
  // `has_ended`: tells that nothing will continue it. Returns where the prompt
  // ends.
  virtual absl::StatusOr<Handle> Finish(bool has_ended) = 0;
};

}  // namespace pando::replay

#endif  // PANDO_REPLAY_CACHE_CALLS_H_
