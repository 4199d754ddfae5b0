#ifndef PANDO_SERVICE_HANDLERS_TREE_DUMPS_H_
#define PANDO_SERVICE_HANDLERS_TREE_DUMPS_H_

#include <cstddef>
#include <list>
#include <memory>

#include "core/operator_results.h"
#include "pando/v1/admin.pb.h"
#include "service/rpc/server_stream.h"

namespace pando {

// The dumps of the tree that are being sent. A caller who reads his slowly, or
// not at all, keeps it waiting here; together they hold a bounded number of
// nodes, for which the dumps make room that have waited longest to be read.
// Owned by AdminService; lives on the polling thread.
class TreeDumps {
 public:
  using Source = StreamSource<v1::DumpTreeResponse>;

  // Sends the dump in messages of a bounded size, at least one. The dumps live
  // on when the source is gone.
  std::unique_ptr<Source> Begin(TreeDump dump);

 private:
  class Stream;

  // Those with nodes to send, the one whose last message is oldest first.
  std::list<Stream*> waiting_;
  size_t nodes_ = 0;  // that they hold together
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_TREE_DUMPS_H_
