#ifndef PANDO_SERVICE_HANDLERS_ADMIN_WIRE_H_
#define PANDO_SERVICE_HANDLERS_ADMIN_WIRE_H_

#include <sys/types.h>

#include <functional>
#include <optional>

#include "base/ids.h"
#include "core/requests/operator_results.h"
#include "core/requests/requests.h"
#include "pando/v1/admin.pb.h"
#include "tiers/prefix_loader.h"

namespace pando {

// Converts the core's results for operators to messages.

void FillFlush(const FlushResult& result, v1::FlushResponse* out);
void FillNamespaces(const NamespaceList& list, v1::ListNamespacesResponse* out);
void FillSessions(const SessionList& list, v1::ListSessionsResponse* out);
void FillLocks(const LockList& list, v1::ListLocksResponse* out);
// `pid_of` returns the process of a writer, or none if it is not visible.
void FillQuarantine(const QuarantineList& list,
                    const std::function<std::optional<pid_t>(WriterId)>& pid_of,
                    v1::ListQuarantineResponse* out);
void FillExplanation(const MatchExplanation& result,
                     v1::ExplainMatchResponse* out);
v1::NotLoaded NotLoadedOnWire(LoadObstacle obstacle);
void FillNode(const TreeNodeInfo& node, v1::TreeNode* out);

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_ADMIN_WIRE_H_
