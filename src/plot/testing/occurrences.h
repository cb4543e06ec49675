// How often a piece of text occurs: for tests of drawings.
#ifndef PANDO_SRC_PLOT_TESTING_OCCURRENCES_H_
#define PANDO_SRC_PLOT_TESTING_OCCURRENCES_H_

#include <cstddef>
#include <string_view>

namespace pando {

inline size_t CountIn(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace pando

#endif  // PANDO_SRC_PLOT_TESTING_OCCURRENCES_H_
