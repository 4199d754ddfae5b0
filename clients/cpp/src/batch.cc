#include "pando/batch.h"

#include <algorithm>
#include <functional>

#include "base/status_macros.h"
#include "clients/cpp/src/connection.h"
#include "clients/cpp/src/exchange.h"
#include "pando/client.h"

namespace pando {
inline namespace client {
namespace {

// The most calls that the server takes at once.
constexpr size_t kMaxBatch = 256;

absl::StatusOr<Done> DoneIf(const absl::Status& status) {
  RETURN_IF_ERROR(status);
  return Done();
}

}  // namespace

// A call of a batch: it is made once to fill in its request and once more to
// read its answer, and keeps its exchange in between.
class Batch::Entry {
 public:
  // `make` runs the call, and stores its result unless the call waits for the
  // batch.
  Entry(const ClientLane* lane, std::function<void(Exchange&)> make)
      : exchange_(lane), make_(std::move(make)) {}

  void Make() { make_(exchange_); }
  Exchange& exchange() { return exchange_; }

 private:
  Exchange exchange_;
  const std::function<void(Exchange&)> make_;
};

Batch::Batch(Client* client) : client_(client) {}
Batch::Batch(Batch&&) noexcept = default;
Batch::~Batch() = default;

template <typename T, typename Run>
Answer<T> Batch::Add(Run run) {
  Answer<T> answer;
  entries_.push_back(std::make_unique<Entry>(
      &client_->connection_->lane(),
      [result = answer.result_, run = std::move(run)](Exchange& exchange) {
        absl::StatusOr<T> made = run(exchange);
        if (!exchange.has_request()) *result = std::move(made);
      }));
  return answer;
}

Answer<Match> Batch::MatchPrefix(std::span<const Token> tokens,
                                 const MatchOptions& options) {
  return Add<Match>([=, client = client_](Exchange& exchange) {
    return client->MatchPrefix(tokens, options, &exchange);
  });
}

Answer<InsertResult> Batch::Insert(std::span<const Token> tokens,
                                   std::span<const PageId> page_ids,
                                   const InsertOptions& options) {
  return Add<InsertResult>([=, client = client_](Exchange& exchange) {
    return client->Insert(tokens, page_ids, options, &exchange);
  });
}

Answer<Lock> Batch::TakeLock(std::span<const Token> tokens,
                             const LockOptions& options) {
  return Add<Lock>([=, client = client_](Exchange& exchange) {
    return client->TakeLock(tokens, options, &exchange);
  });
}

Answer<Done> Batch::Unlock(std::span<Lock> locks) {
  return Add<Done>([=, client = client_](Exchange& exchange) {
    return DoneIf(client->Unlock(locks, &exchange));
  });
}

Answer<ReservedPages> Batch::AllocatePages(uint32_t pages, const Namespace& ns,
                                           std::optional<uint32_t> at_least) {
  return Add<ReservedPages>([=, client = client_](Exchange& exchange) {
    return client->AllocatePages(pages, ns, at_least, &exchange);
  });
}

Answer<Done> Batch::FreePages(const ReservedPages& pages) {
  return Add<Done>([=, client = client_](Exchange& exchange) {
    return DoneIf(client->FreePages(pages, &exchange));
  });
}

void Batch::Send() {
  const std::vector<std::unique_ptr<Entry>> entries = std::move(entries_);
  entries_.clear();
  for (size_t begin = 0; begin < entries.size(); begin += kMaxBatch) {
    const size_t end = std::min(begin + kMaxBatch, entries.size());
    std::vector<Entry*> begun;
    bool fits = true;
    for (size_t i = begin; i < end; ++i) {
      Exchange& exchange = entries[i]->exchange();
      // Later calls must not overtake one that found no room on the lane.
      if (!fits) exchange.LeaveLane();
      entries[i]->Make();
      if (!exchange.has_request()) continue;
      fits = exchange.lane_call() != nullptr;
      begun.push_back(entries[i].get());
    }
    Begin(begun);
    for (Entry* const entry : begun) {
      entry->exchange().GiveAnswer();
      entry->Make();
    }
  }
}

// Publishes the calls that are on the lane; the others are then made one by one
// after them. If none is on the lane, all go in one call of gRPC.
void Batch::Begin(std::span<Entry* const> entries) {
  std::vector<lane::Call*> on_lane;
  std::vector<Exchange*> all;
  for (Entry* const entry : entries) {
    all.push_back(&entry->exchange());
    lane::Call* const call = entry->exchange().lane_call();
    // The session may have got another lane while the requests were made. A
    // call on the later lane is not published, and so goes over gRPC.
    if (call == nullptr ||
        (!on_lane.empty() && &call->lane() != &on_lane.front()->lane())) {
      continue;
    }
    on_lane.push_back(call);
  }
  if (!on_lane.empty()) {
    on_lane.front()->lane().Submit(on_lane);
  } else if (!all.empty()) {
    client_->connection_->ExchangeTogether(all);
  }
}

}  // namespace client
}  // namespace pando
