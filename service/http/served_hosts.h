#ifndef PANDO_SERVICE_HTTP_SERVED_HOSTS_H_
#define PANDO_SERVICE_HTTP_SERVED_HOSTS_H_

#include <string>
#include <string_view>
#include <vector>

namespace pando {

// The names by which the console may be asked: IP addresses, localhost, and
// what is given. A browser that a foreign page has sent here asks by that
// page's name. Immutable.
class ServedHosts {
 public:
  // `address` is host:port; `names` are other names.
  ServedHosts(const std::string& address, std::vector<std::string> names);

  // Of a Host header, with or without a port.
  bool Include(std::string_view host) const;
  // Of an Origin header, which says what page a browser asks for.
  bool IncludeOrigin(std::string_view origin) const;

 private:
  std::vector<std::string> names_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_HTTP_SERVED_HOSTS_H_
