#include "bench/load/scraper.h"

#include <civetweb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <sstream>
#include <vector>

namespace pando::bench {

int FreePort() {
  const int probe = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* name = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (bind(probe, name, size) != 0 || getsockname(probe, name, &size) != 0) {
    std::cerr << "no port is free\n";
    std::exit(1);
  }
  close(probe);
  return ntohs(address.sin_port);
}

std::string Scrape(int port) {
  char error[128] = "";
  mg_connection* connection =
      mg_download("127.0.0.1", port, 0, error, sizeof error, "%s",
                  "GET /metrics HTTP/1.0\r\n\r\n");
  if (connection == nullptr ||
      mg_get_response_info(connection)->status_code != 200) {
    std::cerr << "cannot scrape: " << error << "\n";
    std::exit(1);
  }
  std::string metrics;
  std::vector<char> part(1 << 16);
  for (int size; (size = mg_read(connection, part.data(), part.size())) > 0;) {
    metrics.append(part.data(), size);
  }
  mg_close_connection(connection);
  return metrics;
}

int CountSeries(const std::string& metrics) {
  std::istringstream lines(metrics);
  int series = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#')) ++series;
  }
  return series;
}

}  // namespace pando::bench
