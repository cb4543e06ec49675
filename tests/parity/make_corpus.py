#!/usr/bin/env python3
"""Writes the files of tests/parity/corpus that are made and not written: white space, long runs, bytes that are no text.

    make_corpus.py [FOLDER]
"""

import pathlib
import random
import sys

SPACES = [" ", "  ", "   ", "\t", "\n", "\r", "\r\n", "\n\n", "\v", "\f", "\x1c", "\x85", "\u00a0", "\u1680", "\u2000", "\u2003", "\u2009",
          "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\u200b", "\ufeff", "\u180e"]


def whitespace(source):
    """Every kind of space between, before and behind words, numbers and signs; then a random mix."""
    lines = [f"{left}{space}{right}" for space in SPACES for left, right in
             (("word", "word"), ("", "word"), ("word", ""), ("word ", "word"), ("word", " word"), ("1", "2"), ("!", "!"))]
    mix = [source.choice(SPACES) if source.random() < 0.6 else source.choice(["a", "Be", "7", "42", ".", "('", "é", "中"])
           for _ in range(3000)]
    return "|".join(lines).encode() + b"\n" + "".join(mix).encode()


def long_runs():
    """What a quadratic tokenizer would notice."""
    runs = ["a" * 5000, " " * 3000, "0123456789" * 300, "\n" * 1000, "=" * 2000, "ab" * 2000, "🙂" * 500, "é" * 1000, "中" * 1000, "\t" * 700,
            "A" * 999 + "a" * 999, "!?" * 700, "word" * 900, " word" * 900, "\u00a0" * 300, "\r\n" * 300, "'s" * 400, " \n" * 500]
    return "\n".join(runs).encode()


def invalid_utf8(source):
    """Bytes that are no UTF-8, alone and in text: continuation bytes, cut characters, overlong forms, surrogates. Nothing
    that could be read as a character beyond U+10FFFF, here and below: it ends llama.cpp with std::invalid_argument."""
    bad = [b"\x80", b"\xbf", b"\x80\x80\x80", b"\xc3", b"\xe4\xb8", b"\xf0\x9f\x99", b"\xf0\x9f", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\xaf",
           b"\xf0\x80\x80\xaf", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf8\x88\x80\x80\x80", b"\xfe", b"\xff", b"\xff\xfe",
           b"\xc3\x28", b"\xe2\x28\xa1", b"\xe2\x82\x28", b"\xf0\x28\x8c\xbc"]
    text = b"".join(b"word " + part + b"word" + part + b" 1" + part + b"2\n" + part + b"\n" for part in bad)
    mix = b"".join(source.choice(bad) if source.random() < 0.3 else source.choice([b"the ", b" sea", b"\n", b"7", "é".encode(), "🙂".encode()])
                   for _ in range(1500))
    return text + mix


def random_bytes(source):
    """No NUL, which ends the strings of some interfaces."""
    return bytes(byte for byte in (source.randrange(1, 256) for _ in range(8192)) if not 0xF4 <= byte <= 0xF7)


def random_characters(source):
    """Code points of all planes, the lower ones more often; no surrogates."""
    limits = [0x80, 0x250, 0x3000, 0xd800, 0x20000, 0x110000]
    points = (source.randrange(1, source.choice(limits)) for _ in range(6000))
    return "".join(chr(point) for point in points if not 0xd800 <= point < 0xe000).encode()


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "corpus")
    source = random.Random(20261116)
    (folder / "whitespace.txt").write_bytes(whitespace(source))
    (folder / "long_runs.txt").write_bytes(long_runs())
    (folder / "invalid_utf8.bin").write_bytes(invalid_utf8(source))
    (folder / "random_bytes.bin").write_bytes(random_bytes(source))
    (folder / "random_characters.txt").write_bytes(random_characters(source))
    (folder / "empty.txt").write_bytes(b"")
    (folder / "one_space.txt").write_bytes(b" ")


if __name__ == "__main__":
    main()
