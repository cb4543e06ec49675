"""Do Pando and llama.cpp say the same: tokens, logits, greedy text, perplexity. Each function returns plain data."""

import pathlib
import sys

import numpy as np
from oracle import Oracle

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/parity"))
import goldens  # noqa: E402


def compare_tokens(pando, model):
    """Every file of the corpus, as plain text and with special tokens."""
    rows = []
    with Oracle(model, vocabulary_only=True) as oracle:
        for file in goldens.corpus_files():
            for is_special, options in ((False, ["--no-special"]), (True, [])):
                theirs = oracle.tokenize(file.read_bytes(), add_special=is_special, parse_special=is_special)
                ours = pando.tokenize(file, *options)
                rows.append({"file": file.name, "special": is_special, "tokens": len(theirs),
                             "parts_at": goldens.first_difference(ours, theirs)})
    return {"files": rows, "equal": all(row["parts_at"] is None for row in rows)}


def compare_logits(pando, model, threads):
    """All logits behind each prompt."""
    rows = []
    with Oracle(model, context=1024, threads=threads) as oracle:
        for kind in goldens.PROMPT_KINDS:
            for prompt in goldens.prompts(kind):
                tokens = oracle.tokenize(prompt.encode(), parse_special=True)
                theirs = oracle.logits(tokens)[-1]
                apart = np.array(pando.logits(tokens, len(tokens) - 1, "-t", threads)) - theirs
                rows.append({"prompt": prompt, "tokens": len(tokens), "rms": float(np.sqrt((apart ** 2).mean())),
                             "max": float(np.abs(apart).max()), "likeliest_equal": int(np.argmax(theirs + apart)) == int(np.argmax(theirs))})
    return {"prompts": rows}


def compare_greedy(pando, model, threads):
    """32 tokens of each prompt; where the two part, how close llama.cpp's two candidates were. Beside it llama.cpp against
    itself with flash attention."""
    result = {}
    with Oracle(model, context=1024, threads=threads) as oracle, \
            Oracle(model, context=1024, threads=threads, flash_attention=True) as flash:
        for kind in goldens.PROMPT_KINDS:
            rows = [_greedy_row(pando, oracle, flash, prompt, threads) for prompt in goldens.prompts(kind)]
            result[kind] = {"prompts": rows, "equal": sum(row["parts_at"] is None for row in rows),
                            "llama_cpp_equal_with_flash_attention": sum(row["flash_attention_equal"] for row in rows)}
    return result


def _greedy_row(pando, oracle, flash, prompt, threads):
    tokens = oracle.tokenize(prompt.encode(), parse_special=True)
    theirs, candidates = oracle.greedy(tokens, goldens.GREEDY_TOKENS)
    parting = goldens.first_difference(pando.greedy(prompt, goldens.GREEDY_TOKENS, "-t", threads), theirs)
    margin = None if parting is None else candidates[parting][0][1] - candidates[parting][1][1]
    return {"prompt": prompt, "parts_at": parting, "margin": margin,
            "flash_attention_equal": flash.greedy(tokens, goldens.GREEDY_TOKENS)[0] == theirs}


def compare_perplexity(pando, model, threads):
    """The chronicle in windows of 4096 tokens, with keys and values in f16 and q8_0 on both sides."""
    result = {}
    for kv_type in ("f16", "q8_0"):
        # llama.cpp has quantised values only with flash attention.
        with Oracle(model, context=goldens.PERPLEXITY_WINDOW, kv_type=kv_type, threads=threads,
                    flash_attention=kv_type == "q8_0") as oracle:
            theirs, _ = oracle.perplexity(oracle.tokenize(goldens.CHRONICLE.read_bytes()), goldens.PERPLEXITY_WINDOW,
                                          goldens.PERPLEXITY_STRIDE)
        ours = pando.perplexity(goldens.CHRONICLE, goldens.PERPLEXITY_WINDOW, goldens.PERPLEXITY_STRIDE, "--kv-type", kv_type,
                                "-t", threads)["perplexity"]
        result[kv_type] = {"pando": ours, "llama_cpp": theirs, "ratio": ours / theirs}
    return result
