"""Numbers and tables as Markdown."""


def seconds(value):
    """With the unit that suits it."""
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if value * factor >= 1 or unit == "us":
            return f"{value * factor:.3g} {unit}"
    raise AssertionError


def tokens(count):
    """80000 as 80K, 5120000 as 5.12M."""
    return f"{count / 1e6:g}M" if count >= 1e6 else f"{count / 1e3:g}K" if count >= 1e3 else f"{count:g}"


def size(count):
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= factor:
            return f"{count / factor:.4g} {unit}"
    return f"{count:g} B"


def table(header, rows):
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
