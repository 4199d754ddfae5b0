#ifndef PANDO_BENCH_LOAD_SCRAPER_H_
#define PANDO_BENCH_LOAD_SCRAPER_H_

#include <string>

namespace pando::bench {

// A port of this machine's loopback address that nobody listens on.
int FreePort();

// What GET /metrics answers at that port; ends the program when it does not.
std::string Scrape(int port);

// How many series such an answer has.
int CountSeries(const std::string& metrics);

}  // namespace pando::bench

#endif  // PANDO_BENCH_LOAD_SCRAPER_H_
