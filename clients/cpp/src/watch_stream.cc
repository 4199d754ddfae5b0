#include "clients/cpp/src/watch_stream.h"

namespace pando {
inline namespace client {

WatchStream::WatchStream(const Endpoint& endpoint,
                         const v1::WatchRequest& request, absl::Time deadline)
    : stub_(v1::Events::NewStub(endpoint.channel())) {
  endpoint.Prepare(context_, deadline);
  reader_ = stub_->Watch(&context_, request);
}

WatchStream::~WatchStream() {
  Cancel();
  v1::WatchResponse rest;
  while (Read(&rest).ok()) {
  }
}

absl::Status WatchStream::Read(v1::WatchResponse* response) {
  if (!end_.ok()) return end_;
  if (reader_->Read(response)) return absl::OkStatus();
  end_ = FromGrpc(reader_->Finish());
  if (end_.ok()) end_ = absl::UnavailableError("the server ended the watch");
  return end_;
}

}  // namespace client
}  // namespace pando
