#ifndef PANDO_TOOLS_PANDOCTL_FIGURES_H_
#define PANDO_TOOLS_PANDOCTL_FIGURES_H_

#include <cstdint>
#include <string>

#include "pando/v1/admin.pb.h"

namespace pando::ctl {

// How single figures are written for people.

// "3 locks", "1 lock".
std::string Counted(uint64_t count, const std::string& noun);
// "1h2m3s"; whole seconds from one second on.
std::string AgeText(uint64_t ms);
// "2.0 MiB".
std::string BytesText(uint64_t bytes);
// "63.2", in percent; "-" when nothing was asked for.
std::string PercentText(uint64_t part, uint64_t whole);
// The state of the server's health, in the colour that goes with it.
std::string HealthText(const std::string& status);
// Names of workers and namespaces, which may hold anything.
std::string NameText(const std::string& name);
// The `extra_key` of a namespace; "-" when it has none.
std::string KeyText(const v1::NamespaceInfo& ns);
// "allocation", for example.
std::string ReasonText(v1::EvictionReason reason);
// "disk", for example.
std::string TierName(v1::Tier tier);
// "3 free, 0 reserved, ...".
std::string PagesText(const v1::PageStates& pages);

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_FIGURES_H_
