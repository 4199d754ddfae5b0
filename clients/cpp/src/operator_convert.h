// Converts messages to the answers of Operator.
#ifndef PANDO_CLIENTS_CPP_SRC_OPERATOR_CONVERT_H_
#define PANDO_CLIENTS_CPP_SRC_OPERATOR_CONVERT_H_

#include <cstdint>
#include <vector>

#include "pando/operator_answers.h"
#include "pando/v1/admin.pb.h"

namespace pando {
inline namespace client {

NamespaceInfo FromProto(const v1::NamespaceInfo& ns);
SessionInfo FromProto(const v1::SessionInfo& session);
LockInfo FromProto(const v1::LockInfo& lock);
QuarantineInfo FromProto(const v1::QuarantineInfo& session);
TreeNode FromProto(const v1::TreeNode& node);
Explanation FromProto(const v1::ExplainMatchResponse& answer);
KindInfo FromProto(const v1::KindInfo& kind);
BlockExplanation FromProto(const v1::ExplainBlockResponse& answer);

template <typename Item, typename Messages>
std::vector<Item> AllFromProto(const Messages& messages) {
  std::vector<Item> items;
  items.reserve(static_cast<size_t>(messages.size()));
  for (const auto& message : messages) items.push_back(FromProto(message));
  return items;
}

template <typename Item, typename Messages>
Listing<Item> ListingOf(const Messages& messages, uint32_t total) {
  return {.items = AllFromProto<Item>(messages), .total = total};
}

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_OPERATOR_CONVERT_H_
