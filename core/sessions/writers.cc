#include "core/sessions/writers.h"

#include <algorithm>

namespace pando {

void Writers::Add(WriterId writer) {
  has_mapped_ = true;
  if (std::find(living_.begin(), living_.end(), writer) == living_.end()) {
    living_.push_back(writer);
  }
}

void Writers::AddUnwatched() {
  has_mapped_ = true;
  has_unwatched_ = true;
}

void Writers::Remove(WriterId writer) { std::erase(living_, writer); }

}  // namespace pando
