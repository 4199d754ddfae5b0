#ifndef PANDO_REPLAY_CLIENT_CALLS_H_
#define PANDO_REPLAY_CLIENT_CALLS_H_

#include "pando/client.h"
#include "replay/cache_calls.h"

namespace pando::replay {

// Makes the calls through pandod, with the client library.
class ClientCalls : public CacheCalls {
 public:
  // `client` must outlive this object.
  ClientCalls(Client& client, uint32_t page_tokens)
      : client_(client), page_tokens_(page_tokens) {}

  uint32_t page_tokens() const override { return page_tokens_; }
  absl::StatusOr<std::optional<Admission>> Admit(
      std::span<const Token> prompt, const AdmitOptions& options) override;
  absl::StatusOr<Handle> Finish(bool has_ended) override;

 private:
  Client& client_;
  const uint32_t page_tokens_;
  // The admitted request.
  uint32_t prompt_tokens_ = 0;
  Match match_;
};

}  // namespace pando::replay

#endif  // PANDO_REPLAY_CLIENT_CALLS_H_
