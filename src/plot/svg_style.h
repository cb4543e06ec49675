// What all figures share: the looks of series, the frame of a file that needs nothing but itself and follows the
// reader's light or dark colours, and text that is nothing but text.
#ifndef PANDO_SRC_PLOT_SVG_STYLE_H_
#define PANDO_SRC_PLOT_SVG_STYLE_H_

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

namespace pando {

// Looks (colour, dashes, marker) differ up to this many; then they repeat. In classes of CSS, look i is `s{i}` for
// strokes and `m{i}` for fills.
inline constexpr int kNumPlotLooks = 8;

size_t LookIndex(int look);

// A path around the origin.
const char* MarkerPath(int look);

// Lines of SVG.
class SvgWriter {
 public:
  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

// Space at the top that the title and the subtitle take.
inline constexpr double kSvgHeader = 64;

// Up to the subtitle; what follows ends with "</svg>".
void AddSvgBegin(SvgWriter& out, double width, double height, const std::string& title, const std::string& subtitle);

// `text` so that it is nothing but text inside XML. Control characters, which XML does not know, become '?'.
std::string EscapeXml(const std::string& text);

}  // namespace pando

#endif  // PANDO_SRC_PLOT_SVG_STYLE_H_
