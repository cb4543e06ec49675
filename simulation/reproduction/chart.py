"""Figures as SVG: lines on logarithmic axes, panel beside panel, and bars. They look as those of `--plot` do
(src/plot/svg_style.cc): their own paper, colours for light and dark, one look for each strategy in all figures."""

import math
from xml.sax.saxutils import escape

_PANEL_WIDTH = 300
_PANEL_HEIGHT = 240
_LEFT = 76
_TOP = 96
_GAP = 76
_BOTTOM = 92
_RIGHT = 42

_CIRCLE = "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z"
_SQUARE = "M-3.2 -3.2h6.4v6.4h-6.4z"
_DIAMOND = "M0 -4.6L4.6 0L0 4.6L-4.6 0z"
_TRIANGLE = "M0 -4.4L4.2 3.2L-4.2 3.2z"
_DOWN_TRIANGLE = "M0 4.4L4.2 -3.2L-4.2 -3.2z"
# Colour on light and on dark paper, dashes, marker: lines that lie on each other are all seen.
LOOKS = {
    "tree": ("#0b62c4", "#5aa9ff", "none", _CIRCLE),
    "ring": ("#c92a3a", "#ff7b72", "none", _SQUARE),
    "direct": ("#14804a", "#4fd08f", "7 7", _DIAMOND),
    "allreduce": ("#b85c00", "#ffa657", "2 3", _TRIANGLE),
    "paper": ("#5f6773", "#a6b0bd", "8 3 2 3", _DOWN_TRIANGLE),
}


def _style():
    light = [f".s-{name} {{ stroke: {look[0]}; }} .m-{name} {{ fill: {look[0]}; }} "
             f".line.s-{name} {{ stroke-dasharray: {look[2]}; }}" for name, look in LOOKS.items()]
    dark = [f".s-{name} {{ stroke: {look[1]}; }} .m-{name} {{ fill: {look[1]}; }}" for name, look in LOOKS.items()]
    return "\n".join([
        "<style>", "svg { color: #1f2328; font: 12px system-ui, sans-serif; }", ".paper, .hollow { fill: #ffffff; }",
        "text { fill: currentColor; }", ".title { font-size: 17px; font-weight: 600; }",
        ".panel-title { font-size: 13px; font-weight: 600; }", ".quiet { opacity: 0.75; }",
        ".grid { stroke: currentColor; stroke-opacity: 0.14; }",
        ".frame { stroke: currentColor; stroke-opacity: 0.55; fill: none; }", ".line { fill: none; stroke-width: 2; }",
        *light, ".line.s-tree { stroke-width: 4.5; }",  # drawn first: seen below others that lie on it
        ".line.other, .line.fit { stroke-width: 1.2; stroke-dasharray: 1.5 3; }",
        ".line.fit { stroke: currentColor; }", ".pale { fill-opacity: 0.45; }",
        "@media (prefers-color-scheme: dark) {", "svg { color: #e6edf3; }", ".paper, .hollow { fill: #0d1117; }", *dark,
        ".line.fit { stroke: currentColor; }",
        "}", "</style>"])


def _begin(width, height, title, subtitle):
    return [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            f'role="img"><title>{escape(title)}</title>', _style(),
            f'<rect class="paper" width="{width}" height="{height}"/>',
            f'<text class="title" x="20" y="30">{escape(title)}</text>',
            f'<text class="quiet" x="20" y="50">{escape(subtitle)}</text>']


def _look(name):
    """A line "tree, paper" is another one of tree's: its colour, but dotted, with hollow marks."""
    return name.split(",")[0]


def _is_other(name):
    return "," in name


def _kind(name):
    return " fit" if name.endswith("fit") else " other" if _is_other(name) else ""


def _marker(name, x, y):
    if name.endswith("fit"):
        return ""
    look = _look(name)
    kind = f'hollow s-{look}' if _is_other(name) else f"m-{look}"
    return f'<path class="{kind}" transform="translate({x:.1f} {y:.1f})" d="{LOOKS[look][3]}"/>'


def _decades(low, high):
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    step = max(1, (last - first + 5) // 6)
    return [10.0 ** k for k in range(first, last + 1, step)]


def _points(panels):
    return [point for panel in panels for line in panel["lines"].values() for point in line]


class _Axes:
    """Where values of a panel lie on the page; both axes are logarithmic. All panels have the same y."""

    def __init__(self, left, panel, panels):
        xs, ys = [x for x, _ in _points([panel])], [y for _, y in _points(panels)]
        self._left = left
        self.x_range = min(xs), max(xs)
        # A little room above and below.
        self.y_range = min(ys) / 1.25, max(ys) * 1.25

    @staticmethod
    def _share(value, low, high):
        return 0.5 if high == low else math.log(value / low) / math.log(high / low)

    def x(self, value):
        return self._left + self._share(value, *self.x_range) * _PANEL_WIDTH

    def y(self, value):
        return _TOP + (1 - self._share(value, *self.y_range)) * _PANEL_HEIGHT


def _frame(left, axes, panel, x_label, x_text, y_text):
    bottom, right = _TOP + _PANEL_HEIGHT, left + _PANEL_WIDTH
    parts = [f'<text class="panel-title" x="{left}" y="{_TOP - 11}">{escape(panel["title"])}</text>']
    for value in _decades(*axes.y_range):
        y = axes.y(value)
        parts.append(f'<path class="grid" d="M{left} {y:.1f}H{right}"/>')
        parts.append(f'<text x="{left - 7}" y="{y + 4:.1f}" text-anchor="end">{escape(y_text(value))}</text>')
    for value in panel["x_ticks"]:
        x = axes.x(value)
        parts.append(f'<path class="grid" d="M{x:.1f} {_TOP}V{bottom}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{escape(x_text(value))}</text>')
    parts.append(f'<rect class="frame" x="{left}" y="{_TOP}" width="{_PANEL_WIDTH}" height="{_PANEL_HEIGHT}"/>')
    parts.append(f'<text class="quiet" x="{(left + right) / 2:.0f}" y="{bottom + 37}" text-anchor="middle">'
                 f"{escape(x_label)}</text>")
    return parts


def _line(axes, name, line):
    places = [(axes.x(x), axes.y(y)) for x, y in line]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    return [f'<path class="line s-{_look(name)}{_kind(name)}" d="M{path}"><title>{escape(name)}</title></path>',
            *(_marker(name, x, y) for x, y in places)]


def _legend(names, y):
    parts, x = [], _LEFT
    for name in names:
        parts.append(f'<path class="line s-{_look(name)}{_kind(name)}" d="M{x} {y - 4}h26"/>')
        parts.append(_marker(name, x + 13, y - 4))
        parts.append(f'<text x="{x + 32}" y="{y}">{escape(name)}</text>')
        x += 32 + 7 * len(name) + 20
    return parts


def lines(title, subtitle, panels, x_label, y_label, x_text="{:g}".format, y_text="{:g}".format):
    """`panels`: [{"title": text, "x_ticks": [x, ...], "lines": {name: [(x, y), ...]}}]. Names are strategies, or "tree, paper"
    and "tree, fit" for other lines of the same. What comes first is drawn first, below the others."""
    names = list(dict.fromkeys(name for panel in panels for name in panel["lines"]))
    width = _LEFT + len(panels) * (_PANEL_WIDTH + _GAP) - _GAP + _RIGHT
    height = _TOP + _PANEL_HEIGHT + _BOTTOM
    parts = _begin(width, height, title, subtitle)
    for index, panel in enumerate(panels):
        left = _LEFT + index * (_PANEL_WIDTH + _GAP)
        axes = _Axes(left, panel, panels)
        parts += _frame(left, axes, panel, x_label, x_text, y_text)
        for name, line in panel["lines"].items():
            parts += _line(axes, name, line)
    parts.append(f'<text class="quiet" transform="translate(16 {_TOP + _PANEL_HEIGHT / 2:.0f}) rotate(-90)" '
                 f'text-anchor="middle">{escape(y_label)}</text>')
    return "\n".join([*parts, *_legend(names, height - 20), "</svg>", ""])


def bars(title, subtitle, groups, value_text):
    """`groups`: [(title, [(label, look, value), ...])]; a look is a strategy, with ", pale" behind it for a paler bar."""
    bar, gap, left, width = 18, 8, 210, 420
    most = max(value for _, rows in groups for _, _, value in rows)
    parts, y = [], 70
    for group_title, rows in groups:
        y += 26
        parts.append(f'<text class="panel-title" x="20" y="{y - 8}">{escape(group_title)}</text>')
        for label, look, value in rows:
            kind = " pale" if _is_other(look) else ""
            length = width * value / most
            parts.append(f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{escape(label)}</text>')
            parts.append(f'<rect class="m-{_look(look)}{kind}" x="{left}" y="{y}" width="{length:.1f}" height="{bar}"/>')
            parts.append(f'<text x="{left + length + 6:.1f}" y="{y + 13}">{escape(value_text(value))}</text>')
            y += bar + gap
    return "\n".join([*_begin(left + width + 90, y + 16, title, subtitle), *parts, "</svg>", ""])
