"""Tiny vocabularies: byte-level BPE for each pre-tokenizer, and one in the manner of SentencePiece.

The merges cross borders that pre-tokenizers set (two digits, a letter and the space behind it, two line ends), so that a
wrong border shows as a merge too many.
"""

import collections
import re

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
PRE_TOKENIZERS = ["smollm", "llama-bpe", "gpt-2", "qwen2", "default"]
SPECIAL = [("<|endoftext|>", CONTROL), ("<|im_start|>", CONTROL), ("<|im_end|>", CONTROL), ("<tool>", USER_DEFINED)]
# What training on plain prose would not find: digits, white space, contractions, non-ASCII.
FORCED_MERGES = ["12", "00", "000", "2026", "202", "1234", " 1", " 12", "\n\n", "\n\n\n", "  ", "    ", "        ", "\t\t", "\r\n", " \n",
                 "'s", "'S", "'t", "'ll", "'re", "n't", "!!", "...", "==", "();", "é", "ü", "中", "中文", "日本", " Ж", "Ж", "🙂",
                 "\u00a0", "\u3000", "😀", "👍", "ß", "ا", "न", "한", "!\n", ".\n", ")\n", " é", "_a", "a1", "1a", "A's"]


def byte_letters():
    """GPT-2's table: each byte as one printable character."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    letters = {byte: chr(byte) for byte in printable}
    for byte in range(256):
        if byte not in letters:
            letters[byte] = chr(256 + len(letters) - len(printable))
    return letters


def train_merges(sequences, count, known):
    """Ordinary BPE on lists of symbols: the most frequent pair first, ties by text."""
    merges = []
    while len(merges) < count:
        pairs = collections.Counter()
        for sequence in sequences:
            pairs.update(zip(sequence, sequence[1:]))
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        if "".join(best) not in known:
            known.add("".join(best))
            merges.append(best)
        sequences = [merge_everywhere(sequence, best) for sequence in sequences]
    return merges


def merge_everywhere(sequence, pair):
    merged, i = [], 0
    while i < len(sequence):
        if tuple(sequence[i:i + 2]) == pair:
            merged.append("".join(pair))
            i += 2
        else:
            merged.append(sequence[i])
            i += 1
    return merged


def force_merge(symbols, known, merges):
    """Adds what is needed so that `symbols` can become one token, from the left."""
    whole = symbols[0]
    for symbol in symbols[1:]:
        pair = (whole, symbol)
        whole += symbol
        if whole not in known:
            known.add(whole)
            merges.append(pair)


def bpe_vocabulary(text, words=250, across=120):
    """(tokens, types, merges); all 256 bytes are there, so any byte string can be written."""
    letters = byte_letters()

    def symbols(part):
        return [letters[byte] for byte in part.encode()]

    known = set(letters.values())
    merges = []
    for part in FORCED_MERGES:
        force_merge(symbols(part), known, merges)
    merges += train_merges([symbols(word) for word in re.findall(r" ?\w+", text)], words, known)
    merges += train_merges([symbols(line) for line in text.splitlines(keepends=True)], across, known)
    tokens = list(letters[byte] for byte in range(256)) + ["".join(pair) for pair in merges]
    types = [NORMAL] * len(tokens) + [kind for _, kind in SPECIAL]
    return tokens + [token for token, _ in SPECIAL], types, [" ".join(pair) for pair in merges]


def byte_vocabulary():
    """The smallest: bytes and special tokens, one merge. For models whose text does not matter."""
    letters = byte_letters()
    tokens = [letters[byte] for byte in range(256)] + [letters[32] * 2] + [token for token, _ in SPECIAL]
    return tokens, [NORMAL] * 257 + [kind for _, kind in SPECIAL], [f"{letters[32]} {letters[32]}"]


def sentencepiece_vocabulary(text, pieces=400):
    """(tokens, types, scores) as Llama 2 has them: unknown, begin, end, 256 bytes, then pieces, the likely ones first."""
    spaced = text.replace(" ", "\u2581")
    characters = sorted(set(spaced) | set("éüß中文日本Жж") - {"\n"})
    characters.remove("\n")
    known = set(characters)
    merges = []
    for part in ["\u2581\u2581", "\u2581\u2581\u2581\u2581", "00", "12", "中文", "...", "\u2581é"]:
        force_merge(list(part), known, merges)
    merges += train_merges([list(line) for line in spaced.splitlines()], pieces, known)
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    types = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256
    scores = [0.0] * len(tokens)
    for rank, pair in enumerate(merges):
        tokens.append("".join(pair))
        scores.append(-float(rank))
    for rank, character in enumerate(characters):
        tokens.append(character)
        scores.append(-1000.0 - rank)
    types += [NORMAL] * (len(tokens) - len(types))
    return tokens + ["<tool>"], types + [USER_DEFINED], scores + [0.0]
