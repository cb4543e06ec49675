"""Figures as SVG: lines on logarithmic axes, panel beside panel. Readable on light and dark pages."""

import math
from xml.sax.saxutils import escape

_PANEL_WIDTH = 300
_PANEL_HEIGHT = 240
_LEFT = 62
_TOP = 64
_GAP = 34
_BOTTOM = 86
# Distinct on white and on near-black, and to most who do not see all colours.
_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
_STYLE = """text{font:12px system-ui,sans-serif;fill:#333}.title{font-size:15px;font-weight:600}.panel{font-weight:600}
.axis{stroke:#888;fill:none}.grid{stroke:#8884;fill:none}
@media(prefers-color-scheme:dark){text{fill:#ddd}}"""


def _decades(low, high):
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    step = max(1, (last - first + 5) // 6)
    return [10.0 ** k for k in range(first, last + 1, step)]


def _marker(shape, x, y, colour):
    if shape % 3 == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="{colour}"/>'
    if shape % 3 == 1:
        return f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6" fill="{colour}"/>'
    return f'<path d="M{x:.1f} {y - 4:.1f}l4 7h-8z" fill="{colour}"/>'


class _Axes:
    """Where values of a panel lie on the page; both axes are logarithmic."""

    def __init__(self, left, points):
        xs, ys = [x for x, _ in points], [y for _, y in points]
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


def _panel(index, panel, names, points, x_label, y_label, x_ticks, x_text, y_text):
    left = _LEFT + index * (_PANEL_WIDTH + _GAP)
    axes = _Axes(left, points)
    bottom, right = _TOP + _PANEL_HEIGHT, left + _PANEL_WIDTH
    parts = [f'<text class="panel" x="{left}" y="{_TOP - 10}">{escape(panel["title"])}</text>']
    for value in _decades(*axes.y_range):
        y = axes.y(value)
        parts.append(f'<path class="grid" d="M{left} {y:.1f}H{right}"/>')
        if index == 0:
            parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(y_text(value))}</text>')
    for value in x_ticks:
        x = axes.x(value)
        parts.append(f'<path class="grid" d="M{x:.1f} {_TOP}V{bottom}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{escape(x_text(value))}</text>')
    parts.append(f'<path class="axis" d="M{left} {_TOP}V{bottom}H{right}"/>')
    parts.append(f'<text x="{(left + right) / 2:.0f}" y="{bottom + 36}" text-anchor="middle">{escape(x_label)}</text>')
    if index == 0:
        middle = _TOP + _PANEL_HEIGHT / 2
        parts.append(f'<text transform="translate(14 {middle:.0f}) rotate(-90)" text-anchor="middle">{escape(y_label)}'
                     "</text>")
    for name, line in panel["lines"].items():
        look = names.index(name)
        colour = _COLOURS[look % len(_COLOURS)]
        places = [(axes.x(x), axes.y(y)) for x, y in line]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        parts.append(f'<path d="M{path}" stroke="{colour}" stroke-width="1.8" fill="none"/>')
        parts += [_marker(look, x, y, colour) for x, y in places]
    return parts


def lines(title, panels, x_label, y_label, x_ticks, x_text="{:g}".format, y_text="{:g}".format):
    """`panels`: [{"title": text, "lines": {name: [(x, y), ...]}}]. All have the same axes."""
    names = list(dict.fromkeys(name for panel in panels for name in panel["lines"]))
    points = [point for panel in panels for line in panel["lines"].values() for point in line]
    width = _LEFT + len(panels) * (_PANEL_WIDTH + _GAP)
    height = _TOP + _PANEL_HEIGHT + _BOTTOM
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
             f'aria-label="{escape(title)}"><style>{_STYLE}</style>',
             f'<text class="title" x="{_LEFT}" y="24">{escape(title)}</text>']
    for index, panel in enumerate(panels):
        parts += _panel(index, panel, names, points, x_label, y_label, x_ticks, x_text, y_text)
    x = _LEFT
    for look, name in enumerate(names):
        y = height - 16
        parts.append(_marker(look, x, y - 4, _COLOURS[look % len(_COLOURS)]))
        parts.append(f'<text x="{x + 9}" y="{y}">{escape(name)}</text>')
        x += 9 + 8 * len(name) + 22
    return "\n".join([*parts, "</svg>", ""])
