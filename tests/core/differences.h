#ifndef PANDO_TESTS_CORE_DIFFERENCES_H_
#define PANDO_TESTS_CORE_DIFFERENCES_H_

#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pando::program {

// A list of the points on which two caches disagree.
class Differences {
 public:
  template <typename T>
  void Compare(std::string_view what, const T& real, const T& model) {
    if (real == model) return;
    std::ostringstream out;
    out << what << ": real ";
    Print(out, real);
    out << ", model ";
    Print(out, model);
    list_.push_back(out.str());
  }

  void Add(std::string difference) { list_.push_back(std::move(difference)); }

  // Returns all differences since the last call.
  std::vector<std::string> Take() { return std::exchange(list_, {}); }

 private:
  template <typename T>
  static void Print(std::ostream& out, const T& value) {
    out << value;
  }
  template <typename T>
  static void Print(std::ostream& out, const std::vector<T>& values) {
    for (const T& value : values) {
      out << ' ';
      Print(out, value);
    }
  }
  template <typename A, typename B>
  static void Print(std::ostream& out, const std::pair<A, B>& value) {
    out << value.first << ':' << static_cast<int>(value.second);
  }

  std::vector<std::string> list_;
};

}  // namespace pando::program

#endif  // PANDO_TESTS_CORE_DIFFERENCES_H_
