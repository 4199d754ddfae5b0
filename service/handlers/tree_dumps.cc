#include "service/handlers/tree_dumps.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "service/handlers/admin_wire.h"

namespace pando {
namespace {

constexpr size_t kNodesOfAMessage = 1'000;
// Four of the longest dumps.
constexpr size_t kMaxWaitingNodes = 400'000;

}  // namespace

class TreeDumps::Stream final : public Source {
 public:
  Stream(TreeDumps* dumps, TreeDump dump)
      : dumps_(dumps),
        dump_(std::move(dump)),
        place_(dumps->waiting_.insert(dumps->waiting_.end(), this)) {
    dumps_->nodes_ += dump_.nodes.size();
  }
  ~Stream() override { Release(); }

  Next Fill(v1::DumpTreeResponse& message) override {
    if (is_over_) return Next::kEnd;
    const size_t end = std::min(dump_.nodes.size(), sent_ + kNodesOfAMessage);
    for (; sent_ < end; ++sent_) {
      FillNode(dump_.nodes[sent_], message.add_nodes());
    }
    if (sent_ < dump_.nodes.size()) {
      dumps_->waiting_.splice(dumps_->waiting_.end(), dumps_->waiting_, place_);
      return Next::kMessage;
    }
    message.set_omitted(dump_.omitted);
    Release();
    return Next::kMessage;
  }

  absl::Status end() const override { return end_; }

  // The nodes that are left are not sent.
  void CutOff() {
    end_ = absl::ResourceExhaustedError(
        "the dump was read too slowly; others needed its memory");
    Release();
  }

 private:
  void Release() {
    if (std::exchange(is_over_, true)) return;
    dumps_->waiting_.erase(place_);
    dumps_->nodes_ -= dump_.nodes.size();
    dump_ = TreeDump();  // its memory, too
  }

  TreeDumps* const dumps_;
  TreeDump dump_;
  const std::list<Stream*>::iterator place_;
  size_t sent_ = 0;
  bool is_over_ = false;
  absl::Status end_;
};

std::unique_ptr<TreeDumps::Source> TreeDumps::Begin(TreeDump dump) {
  auto stream = std::make_unique<Stream>(this, std::move(dump));
  while (nodes_ > kMaxWaitingNodes) waiting_.front()->CutOff();
  return stream;
}

}  // namespace pando
