#include "tools/pandoctl/tables.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/pandoctl/figures.h"
#include "tools/pandoctl/table.h"

namespace pando::ctl {
namespace {

std::string YesNo(bool value) { return value ? "yes" : "no"; }

// "3 locked, 1 reserved"; "-" for none.
template <typename Holder>
std::string BlocksText(const Holder& holder) {
  if (holder.locked_blocks() + holder.reserved_blocks() == 0) return "-";
  return absl::StrCat(holder.locked_blocks(), " locked, ",
                      holder.reserved_blocks(), " reserved");
}

}  // namespace

std::string NamespaceTable(const Many<v1::NamespaceInfo>& namespaces) {
  if (namespaces.empty()) return "no namespace has anything cached or locked\n";
  Table table({"NAMESPACE", "EXTRA_KEY", "SALTED", "BIGRAM", "EVICTABLE",
               "PROTECTED", "NODES"});
  for (const v1::NamespaceInfo& ns : namespaces) {
    table.Add({absl::StrCat(ns.number()), KeyText(ns),
               YesNo(ns.has_cache_salt()), YesNo(ns.bigram()),
               absl::StrCat(ns.evictable_pages()),
               absl::StrCat(ns.protected_pages()), absl::StrCat(ns.nodes())});
  }
  return table.Text();
}

std::string SessionTable(const Many<v1::SessionInfo>& sessions) {
  if (sessions.empty()) return "no sessions\n";
  Table table({"SESSION", "CLIENT", "AGE", "LOCKS", "RESERVED", "BLOCKS",
               "STEPS", "CONNECTED", "ATTACHED"});
  for (const v1::SessionInfo& session : sessions) {
    table.Add(
        {absl::StrCat(session.session_number()),
         NameText(session.client_name()), AgeText(session.age_ms()),
         absl::StrCat(session.locks()), absl::StrCat(session.reserved_pages()),
         BlocksText(session), absl::StrCat(session.steps()),
         session.is_internal() ? "internal" : YesNo(session.is_connected()),
         YesNo(session.is_attached())});
  }
  return table.Text();
}

std::string LockTable(const Many<v1::LockInfo>& locks) {
  if (locks.empty()) return "no locks\n";
  Table table({"SESSION", "CLIENT", "TOKENS", "AGE", "NAMESPACE"});
  for (const v1::LockInfo& lock : locks) {
    table.Add({absl::StrCat(lock.session_number()),
               NameText(lock.client_name()), absl::StrCat(lock.locked_tokens()),
               AgeText(lock.age_ms()), absl::StrCat(lock.namespace_number())});
  }
  return table.Text();
}

std::string QuarantineTable(const Many<v1::QuarantineInfo>& sessions) {
  Table table({"SESSION", "CLIENT", "PAGES", "BLOCKS", "AGE", "PROCESSES",
               "FREE WHEN"});
  for (const v1::QuarantineInfo& session : sessions) {
    table.Add({absl::StrCat(session.session_number()),
               NameText(session.client_name()), absl::StrCat(session.pages()),
               BlocksText(session), AgeText(session.age_ms()),
               session.living_pids().empty()
                   ? "-"
                   : absl::StrJoin(session.living_pids(), ","),
               session.is_held() ? "nobody holds the memory"
                                 : "the quarantine is over"});
  }
  return table.Text();
}

std::string KindTable(const Many<v1::KindInfo>& kinds) {
  if (kinds.empty()) return "no kinds of blocks\n";
  Table table({"KIND", "LABEL", "IDENTITY", "GENERATION", "SESSIONS", "BLOCK",
               "MEMORY", "EVICTABLE", "PROTECTED", "RESERVED", "HITS %",
               "EVICTED"});
  for (const v1::KindInfo& kind : kinds) {
    table.Add(
        {absl::StrCat(kind.kind_number()), NameText(kind.label()),
         absl::BytesToHexString(kind.identity().substr(0, 6)),
         absl::StrCat(kind.generation(), kind.is_newest() ? "" : " (old)"),
         absl::StrCat(kind.sessions()), BytesText(kind.block_bytes()),
         BytesText(kind.memory_bytes()), absl::StrCat(kind.evictable_blocks()),
         absl::StrCat(kind.protected_blocks()),
         absl::StrCat(kind.reserved_blocks()),
         PercentText(kind.hits(), kind.hits() + kind.misses()),
         absl::StrCat(kind.evicted_blocks())});
  }
  return table.Text();
}

std::string QuotaTable(const Many<v1::QuotaClass>& classes) {
  Table table(
      {"CLASS", "FLOOR", "CAP", "RESERVED", "CACHED", "RETAINS", "SPARED"});
  for (const v1::QuotaClass& quota : classes) {
    table.Add({quota.name().empty() ? "(others)" : NameText(quota.name()),
               absl::StrCat(quota.floor_pages()),
               quota.has_cap_pages() ? absl::StrCat(quota.cap_pages()) : "-",
               absl::StrCat(quota.reserved_pages()),
               absl::StrCat(quota.cached_pages()),
               absl::StrCat(quota.max_retention_seconds(), "s"),
               absl::StrCat(quota.spared_leaves())});
  }
  return table.Text();
}

std::string BlockQuotaTable(const Many<v1::BlockQuota>& quotas) {
  Table table({"BLOCK QUOTA", "FLOOR", "CAP", "MEMORY"});
  for (const v1::BlockQuota& quota : quotas) {
    table.Add({NameText(quota.name()), BytesText(quota.floor_bytes()),
               quota.has_cap_bytes() ? BytesText(quota.cap_bytes()) : "-",
               BytesText(quota.used_bytes())});
  }
  return table.Text();
}

}  // namespace pando::ctl
