"""Do Pando and llama.cpp say the same: tokens, logits, greedy text, perplexity. Each function returns plain data."""

import pathlib
import sys
import tempfile

import numpy as np
from oracle import Oracle
from pando_program import PandoProgram
from twin import write_twin

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
    """32 tokens of each prompt; where the two part, how close llama.cpp's two candidates were. Beside it the same of llama.cpp
    against itself with flash attention: what no other program can be asked to undercut."""
    result = {}
    with Oracle(model, context=1024, threads=threads) as oracle, \
            Oracle(model, context=1024, threads=threads, flash_attention=True) as flash:
        for kind in goldens.PROMPT_KINDS:
            rows = [_greedy_row(pando, oracle, flash, prompt, threads) for prompt in goldens.prompts(kind)]
            result[kind] = {"prompts": rows, **{f"{side}_equal": sum(row[side]["parts_at"] is None for row in rows)
                                                for side in ("pando", "flash_attention")}}
    return result


def compare_exact_greedy(pando, model, threads):
    """The same with nothing rounded: weights, keys and values in float32."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        twin = pathlib.Path(folder, "twin.gguf")
        write_twin(model, twin)
        program = PandoProgram(pando.program, twin)
        with Oracle(twin, context=1024, threads=threads, kv_type="f32") as oracle:
            for prompt in (prompt for kind in goldens.PROMPT_KINDS for prompt in goldens.prompts(kind)):
                theirs, candidates = oracle.greedy(oracle.tokenize(prompt.encode(), parse_special=True), goldens.GREEDY_TOKENS)
                ours = program.greedy(prompt, goldens.GREEDY_TOKENS, "-t", threads, "--kv-type", "f32")
                rows.append({"prompt": prompt, **_parting(ours, theirs, candidates)})
    return {"prompts": rows, "equal": sum(row["parts_at"] is None for row in rows)}


def _greedy_row(pando, oracle, flash, prompt, threads):
    tokens = oracle.tokenize(prompt.encode(), parse_special=True)
    theirs, candidates = oracle.greedy(tokens, goldens.GREEDY_TOKENS)
    ours = pando.greedy(prompt, goldens.GREEDY_TOKENS, "-t", threads)
    return {"prompt": prompt, "pando": _parting(ours, theirs, candidates),
            "flash_attention": _parting(flash.greedy(tokens, goldens.GREEDY_TOKENS)[0], theirs, candidates)}


def _parting(tokens, theirs, candidates):
    """Where the tokens part from llama.cpp's, and how far its two candidates were apart there."""
    at = goldens.first_difference(tokens, theirs)
    return {"parts_at": at, "margin": None if at is None else candidates[at][0][1] - candidates[at][1][1]}


def compare_perplexity(pando, model, threads):
    """4096 tokens of the chronicle, with the same keys and values on both sides. Beside it llama.cpp with flash attention
    where it can be switched: its values in q8_0 need it."""
    result = {}
    for kv_type in goldens.PERPLEXITY_KV_TYPES:
        theirs, flash = (_llama_cpp_perplexity(model, threads, kv_type, flash_attention)
                         for flash_attention in (kv_type == "q8_0", True))
        ours = pando.perplexity(goldens.CHRONICLE, goldens.PERPLEXITY_WINDOW, goldens.PERPLEXITY_STRIDE, "--kv-type", kv_type,
                                "-t", threads)["perplexity"]
        result[kv_type] = {"pando": ours, "llama_cpp": theirs, "ratio": ours / theirs,
                           "llama_cpp_flash_attention": flash, "flash_attention_ratio": flash / theirs}
    return result


def _llama_cpp_perplexity(model, threads, kv_type, flash_attention):
    with Oracle(model, context=goldens.PERPLEXITY_WINDOW, kv_type=kv_type, threads=threads,
                flash_attention=flash_attention) as oracle:
        return oracle.perplexity(oracle.tokenize(goldens.CHRONICLE.read_bytes()), goldens.PERPLEXITY_WINDOW,
                                 goldens.PERPLEXITY_STRIDE)[0]
