#include "service/http/served_hosts.h"

#include <arpa/inet.h>

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"

namespace pando {
namespace {

// Returns the host of a host:port: "::1" for "[::1]:80", "pando" for
// "pando:80".
std::string WithoutPort(std::string_view host) {
  if (host.starts_with('[')) {
    return std::string(host.substr(1, host.find(']') - 1));
  }
  return std::string(host.substr(0, host.rfind(':')));
}

bool IsIpAddress(const std::string& host) {
  in6_addr address;
  return inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

}  // namespace

ServedHosts::ServedHosts(const std::string& address,
                         std::vector<std::string> names)
    : names_(std::move(names)) {
  names_.push_back(WithoutPort(address));
  names_.emplace_back("localhost");
}

bool ServedHosts::IncludeOrigin(std::string_view origin) const {
  const size_t scheme = origin.find("://");
  return scheme != std::string_view::npos && Include(origin.substr(scheme + 3));
}

bool ServedHosts::Include(std::string_view host) const {
  const std::string name = WithoutPort(host);
  return IsIpAddress(name) ||
         absl::c_any_of(names_, [&name](const std::string& known) {
           return absl::EqualsIgnoreCase(known, name);
         });
}

}  // namespace pando
