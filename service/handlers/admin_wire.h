#ifndef PANDO_SERVICE_HANDLERS_ADMIN_WIRE_H_
#define PANDO_SERVICE_HANDLERS_ADMIN_WIRE_H_

#include "core/operator_results.h"
#include "core/requests.h"
#include "pando/v1/admin.pb.h"

namespace pando {

// From what the core tells operators to messages.

void FillFlush(const FlushResult& result, v1::FlushResponse* out);
void FillNamespaces(const NamespaceList& list, v1::ListNamespacesResponse* out);
void FillSessions(const SessionList& list, v1::ListSessionsResponse* out);
void FillLocks(const LockList& list, v1::ListLocksResponse* out);
// All but the processes.
void FillQuarantined(const QuarantineInfo& session, v1::QuarantineInfo* out);
void FillExplanation(const MatchExplanation& result,
                     v1::ExplainMatchResponse* out);
void FillNode(const TreeNodeInfo& node, v1::TreeNode* out);

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_ADMIN_WIRE_H_
