#include "tools/pandoctl/fleet.h"

#include <arpa/inet.h>
#include <netdb.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "tools/pandoctl/access.h"

namespace pando::ctl {
namespace {

// Returns the addresses of a host in numeric form, "10.0.0.1" or "[fd00::1]";
// none if it is not known. Only those of the family that has more are returned,
// because a machine with an address of each is one machine.
std::vector<std::string> Resolve(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list,
                                                             freeaddrinfo);
  std::vector<std::string> version4, version6;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    char text[NI_MAXHOST];
    if (getnameinfo(entry->ai_addr, entry->ai_addrlen, text, sizeof(text),
                    nullptr, 0, NI_NUMERICHOST) != 0) {
      continue;
    }
    if (entry->ai_family == AF_INET6) {
      version6.push_back(absl::StrCat("[", text, "]"));
    } else {
      version4.emplace_back(text);
    }
  }
  return version6.size() > version4.size() ? version6 : version4;
}

bool IsPath(const std::string& address) {
  return absl::StartsWith(address, "unix:") || absl::StartsWith(address, "/");
}

}  // namespace

absl::StatusOr<std::vector<Machine>> FindMachines(const Options& options) {
  ASSIGN_OR_RETURN(const Access access, ReadAccess(options));
  const absl::Duration timeout = absl::Seconds(options.timeout_s);
  std::vector<std::string> given = options.addresses;
  if (given.empty()) given.push_back(options.address);
  std::vector<Machine> machines;
  const auto add = [&](const std::string& address,
                       const std::string& certified_name) {
    machines.push_back(
        {address,
         std::make_unique<Server>(address, timeout, access, certified_name)});
  };
  for (const std::string& address : given) {
    const size_t colon = address.rfind(':');
    if (IsPath(address) || colon == std::string::npos || address[0] == '[') {
      add(address, "");
      continue;
    }
    const std::string host = address.substr(0, colon);
    const std::vector<std::string> found = Resolve(host);
    if (found.size() <= 1) {  // an unknown host is reported by the call
      add(address, "");
      continue;
    }
    for (const std::string& numeric : found) {
      add(absl::StrCat(numeric, address.substr(colon)), host);
    }
  }
  return machines;
}

}  // namespace pando::ctl
