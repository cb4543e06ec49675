#include "src/plot/svg_style.h"

#include <array>

namespace pando {
namespace {

struct Look {
  const char* light;
  const char* dark;
  const char* dashes;  // lines that lie on each other are both seen
  const char* marker;  // a path around the origin
};

constexpr const char* kCircle = "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z";
constexpr const char* kSquare = "M-3.2 -3.2h6.4v6.4h-6.4z";
constexpr const char* kDiamond = "M0 -4.6L4.6 0L0 4.6L-4.6 0z";
constexpr const char* kTriangle = "M0 -4.4L4.2 3.2L-4.2 3.2z";
constexpr const char* kDownTriangle = "M0 4.4L4.2 -3.2L-4.2 -3.2z";

constexpr std::array<Look, kNumPlotLooks> kLooks = {{
    {"#0b62c4", "#5aa9ff", "none", kCircle},
    {"#c92a3a", "#ff7b72", "none", kSquare},
    {"#14804a", "#4fd08f", "7 7", kDiamond},
    {"#b85c00", "#ffa657", "2 3", kTriangle},
    {"#5f6773", "#a6b0bd", "8 3 2 3", kDownTriangle},
    {"#6f42c1", "#b99bff", "7 3", kCircle},
    {"#a8327a", "#f08bc4", "2 3", kSquare},
    {"#7a6200", "#d9c04a", "8 3 2 3", kDiamond},
}};

void AddStyle(SvgWriter& out) {
  out.Add("<style>");
  out.Add("svg {{ color: #1f2328; font: 12px system-ui, sans-serif; }}");
  out.Add(".paper {{ fill: #ffffff; }}");
  out.Add("text {{ fill: currentColor; }}");
  out.Add(".title {{ font-size: 17px; font-weight: 600; }}");
  out.Add(".panel-title {{ font-size: 13px; font-weight: 600; }}");
  out.Add(".quiet {{ opacity: 0.75; }}");
  out.Add(".grid {{ stroke: currentColor; stroke-opacity: 0.14; }}");
  out.Add(".frame {{ stroke: currentColor; stroke-opacity: 0.55; fill: none; }}");
  out.Add(".line {{ fill: none; stroke-width: 2; stroke-linejoin: round; }}");
  out.Add(".on-look {{ fill: #ffffff; }}");
  out.Add(".leader {{ fill: none; stroke-width: 1; stroke-opacity: 0.5; }}");
  for (size_t i = 0; i < kLooks.size(); ++i) {
    out.Add(".s{0} {{ stroke: {1}; }} .m{0}, text.m{0} {{ fill: {1}; }} .line.s{0} {{ stroke-dasharray: {2}; }}", i,
            kLooks[i].light, kLooks[i].dashes);
  }
  out.Add(".line.s0 {{ stroke-width: 4.5; }}");  // tree's, which is drawn first: seen below others that lie on it
  out.Add("@media (prefers-color-scheme: dark) {{");
  out.Add("svg {{ color: #e6edf3; }}");
  out.Add(".paper, .on-look {{ fill: #0d1117; }}");
  for (size_t i = 0; i < kLooks.size(); ++i) {
    out.Add(".s{0} {{ stroke: {1}; }} .m{0}, text.m{0} {{ fill: {1}; }}", i, kLooks[i].dark);
  }
  out.Add("}}");
  out.Add("</style>");
}

}  // namespace

size_t LookIndex(int look) { return static_cast<size_t>(look) % kLooks.size(); }

const char* MarkerPath(int look) { return kLooks[LookIndex(look)].marker; }

void AddSvgBegin(SvgWriter& out, double width, double height, const std::string& title, const std::string& subtitle) {
  out.Add(
      R"svg(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}" role="img">)svg",
      width, height);
  out.Add("<title>{}</title>", EscapeXml(title));
  AddStyle(out);
  out.Add(R"svg(<rect class="paper" width="{:.0f}" height="{:.0f}"/>)svg", width, height);
  out.Add(R"svg(<text class="title" x="20" y="30">{}</text>)svg", EscapeXml(title));
  out.Add(R"svg(<text class="quiet" x="20" y="50">{}</text>)svg", EscapeXml(subtitle));
}

std::string EscapeXml(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
  }
  return escaped;
}

}  // namespace pando
