#ifndef PANDO_TOOLS_PANDOCTL_TABLES_H_
#define PANDO_TOOLS_PANDOCTL_TABLES_H_

#include <google/protobuf/repeated_ptr_field.h>

#include <string>

#include "pando/v1/admin.pb.h"

namespace pando::ctl {

// The lists of Admin as tables with a header; an empty list is said to be
// empty.

template <typename T>
using Many = google::protobuf::RepeatedPtrField<T>;

std::string NamespaceTable(const Many<v1::NamespaceInfo>& namespaces);
std::string SessionTable(const Many<v1::SessionInfo>& sessions);
std::string LockTable(const Many<v1::LockInfo>& locks);
std::string QuarantineTable(const Many<v1::QuarantineInfo>& sessions);
std::string KindTable(const Many<v1::KindInfo>& kinds);
std::string QuotaTable(const Many<v1::QuotaClass>& classes);
std::string BlockQuotaTable(const Many<v1::BlockQuota>& quotas);

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_TABLES_H_
