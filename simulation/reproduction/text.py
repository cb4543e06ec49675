"""Numbers and tables as Markdown."""


def seconds(value):
    """With the unit that suits it."""
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 1 or unit == "µs":
            return f"{value * factor:.3g} {unit}"
    raise AssertionError


def tokens(count):
    """In full: 64K is 65,536 wherever Pando says it, and the paper's counts are powers of ten."""
    return f"{count:,}"


def size(count):
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.4g} {unit}"
    return f"{count:g} B"


def table(header, rows):
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
