#ifndef PANDO_BENCH_LOAD_SCRAPER_H_
#define PANDO_BENCH_LOAD_SCRAPER_H_

#include <string>

namespace pando::bench {

// A free port of this machine's loopback address.
int FreePort();

// The answer to GET /metrics at that port; ends the program when there is none.
std::string Scrape(int port);

// How many series such an answer has.
int CountSeries(const std::string& metrics);

}  // namespace pando::bench

#endif  // PANDO_BENCH_LOAD_SCRAPER_H_
