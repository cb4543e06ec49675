#!/usr/bin/env python3
"""Records what llama.cpp says about the corpus, the real model and the tiny models, as tests/parity/golden/*.json.

    record_goldens.py MODEL [tokens] [tiny] [logits] [greedy] [exact_greedy] [perplexity]
        [exact_perplexity]      default: all

Runs in the virtual environment of benchmarks/llama_cpp (benchmarks/llama_cpp/compare --python prints its interpreter).
Beside llama.cpp's logits stand those of the model's twin, the same weights as float32, in which no activation is rounded:
the distance between the two is how far rounding moves logits, and the tests allow Pando as much.
"""

import argparse
import json
import pathlib
import sys
import tempfile

import numpy as np

import goldens
import make_tiny_models
import tiny_models

sys.path.insert(0, str(goldens.ROOT / "benchmarks/llama_cpp"))
from oracle import Oracle, describe  # noqa: E402
from twin import write_twin  # noqa: E402


def save(name, model, settings, content):
    header = {"made_by": describe(), "model": model, "settings": settings}
    lines = [f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in {**header, **content}.items()]
    goldens.GOLDEN.mkdir(exist_ok=True)
    (goldens.GOLDEN / name).write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(name, flush=True)


def all_prompts():
    return [prompt for kind in goldens.PROMPT_KINDS for prompt in goldens.prompts(kind)]


def rounded(values):
    return [float(f"{value:.6g}") for value in values]


def token_digests(path):
    """Digests of all files of the corpus: as plain text, and with special tokens read and added."""
    with Oracle(path, vocabulary_only=True) as oracle:
        texts = {file.name: file.read_bytes() for file in goldens.corpus_files()}
        plain = {name: goldens.digest(oracle.tokenize(text)) for name, text in texts.items()}
        special = {name: goldens.digest(oracle.tokenize(text, add_special=True, parse_special=True))
                   for name, text in texts.items()}
    return {"plain": plain, "special": special}


def record_tokens(model):
    save("tokens.json", model.name, "llama_tokenize; plain: add_special and parse_special false, special: both true",
         token_digests(model))
    # One line per vocabulary; ids themselves would be most of the file.
    vocabularies = {path.stem: token_digests(path) for path in sorted(goldens.MODELS.glob("vocab-*.gguf"))}
    for digests in vocabularies.values():
        for files in digests.values():
            for entry in files.values():
                if entry["count"] > 300:
                    entry.pop("ids", None)
    save("tiny_tokens.json", "tests/parity/models/vocab-*.gguf", "as in tokens.json", vocabularies)


def tiny_logits(path, window):
    with Oracle(path, context=256, kv_type="f32", threads=1) as oracle:
        if window:
            return {goldens.TINY_LAST: oracle.windowed_logits(goldens.TINY_TOKENS, window)}
        logits = oracle.logits(goldens.TINY_TOKENS)
        return {position: logits[position] for position in goldens.TINY_POSITIONS}


def record_tiny():
    content = {}
    with tempfile.TemporaryDirectory() as folder:
        twins = pathlib.Path(folder)
        for model in tiny_models.all_models():
            make_tiny_models.write_model(twins / f"{model.name}.gguf", model, as_float32=True)
            own = tiny_logits(goldens.MODELS / f"{model.name}.gguf", model.window)
            exact = tiny_logits(twins / f"{model.name}.gguf", model.window)
            content[model.name] = {
                str(position): {"rms": float(f"{goldens.rms(own[position], exact[position]):.4g}"),
                                "spread": float(f"{exact[position].std():.4g}"),
                                "logits": rounded(own[position]), "exact": rounded(exact[position])}
                for position in own}
            print(model.name, {p: (c["rms"], c["spread"]) for p, c in content[model.name].items()}, flush=True)
    save("tiny_logits.json", "tests/parity/models/*.gguf",
         "KV f32, flash attention off, 1 thread, tokens goldens.TINY_TOKENS; a window by taking tokens out of the cache",
         content)


def golden_point(position, logits, exact):
    """The highest logits with the same tokens' exact ones, and how far all of them are apart."""
    best = np.argsort(-logits, kind="stable")[:goldens.TOP]
    apart = logits - exact
    return {"position": position, "tokens": best.tolist(), "logits": rounded(logits[best]), "exact": rounded(exact[best]),
            "rms": float(f"{np.sqrt((apart ** 2).mean()):.4g}"), "max": float(f"{np.abs(apart).max():.4g}")}


def logits_of(path, texts):
    """For each (tokens, positions), rows of logits."""
    with Oracle(path, context=1024, threads=1) as oracle:
        return [oracle.logits(tokens)[positions] for tokens, positions in texts]


def record_logits(model):
    with Oracle(model, vocabulary_only=True) as oracle:
        tokens = [oracle.tokenize(prompt.encode(), parse_special=True) for prompt in all_prompts()]
        chronicle = oracle.tokenize(goldens.CHRONICLE.read_bytes())[:max(goldens.CHRONICLE_POSITIONS) + 1]
    texts = [(ids, [len(ids) - 1]) for ids in tokens] + [(chronicle, goldens.CHRONICLE_POSITIONS)]
    with tempfile.TemporaryDirectory() as folder:
        twin = pathlib.Path(folder, "twin.gguf")
        write_twin(model, twin)
        rows = zip(texts, logits_of(model, texts), logits_of(twin, texts))
    entries = [{"ids": ids, "points": [golden_point(*point) for point in zip(positions, own, exact)]}
               for (ids, positions), own, exact in rows]
    save("logits.json", model.name, "KV f16, flash attention off, chunks of 512; exact: with float32 weights",
         {"prompts": entries[:-1], "chronicle": entries[-1]})


def greedy_runs(path, prompts, **settings):
    with Oracle(path, context=1024, **settings) as oracle:
        tokens = [oracle.tokenize(prompt.encode(), parse_special=True) for prompt in prompts]
        runs = [oracle.greedy(ids, goldens.GREEDY_TOKENS) for ids in tokens]
        return [{"prompt_tokens": len(ids), "tokens": chosen,
                 "candidates": [[[token, float(f"{logit:.6g}")] for token, logit in pair] for pair in candidates],
                 "text": oracle.detokenize(chosen).decode(errors="replace")}
                for ids, (chosen, candidates) in zip(tokens, runs)]


def check_decided(runs, agreement):
    margin = min(first[1] - second[1] for run in runs for first, second in run["candidates"])
    if min(agreement.values()) < len(runs) or margin < goldens.DECIDED_MARGIN:
        raise SystemExit(f"llama.cpp has not decided some prompts of prompts.json: {agreement}, least margin {margin}")


def record_greedy(model):
    """Also with other settings, to see how much llama.cpp agrees with itself."""
    with tempfile.TemporaryDirectory() as folder:
        twin = pathlib.Path(folder, "twin.gguf")
        write_twin(model, twin)
        others = {"flash attention": (model, {"flash_attention": True}), "KV f32": (model, {"kv_type": "f32"}),
                  "float32 weights": (twin, {})}
        content = {}
        for kind in goldens.PROMPT_KINDS:
            content[kind] = greedy_runs(model, goldens.prompts(kind))
            agreement = {name: sum(own["tokens"] == other["tokens"] for own, other in
                                   zip(content[kind], greedy_runs(path, goldens.prompts(kind), **settings)))
                         for name, (path, settings) in others.items()}
            content[f"{kind}_equal_with_other_settings"] = agreement
        check_decided(content["decided"], content["decided_equal_with_other_settings"])
    save("greedy.json", model.name, "KV f16, flash attention off; the highest logit each time, past end-of-text tokens too",
         content)


def record_exact_greedy(model):
    """With nothing rounded: weights, keys and values in float32."""
    with tempfile.TemporaryDirectory() as folder:
        twin = pathlib.Path(folder, "twin.gguf")
        write_twin(model, twin)
        content = {kind: greedy_runs(twin, goldens.prompts(kind), kv_type="f32") for kind in goldens.PROMPT_KINDS}
    save("exact_greedy.json", model.name, "weights and KV f32, flash attention off; as greedy.json", content)


def chronicle_perplexity(path, window, kv_type):
    """Of the first `window` tokens, without the first."""
    flash = kv_type == "q8_0"  # whose values need it
    with Oracle(path, context=window, kv_type=kv_type, flash_attention=flash, threads=1) as oracle:
        perplexity, count = oracle.perplexity(oracle.tokenize(goldens.CHRONICLE.read_bytes())[:window], window, window - 1)
    return {"tokens_scored": count, "flash_attention": flash, "perplexity": perplexity}


def record_perplexity(model):
    content = {kv_type: chronicle_perplexity(model, goldens.PERPLEXITY_WINDOW, kv_type)
               for kv_type in goldens.PERPLEXITY_KV_TYPES}
    save("perplexity.json", model.name, f"the first {goldens.PERPLEXITY_WINDOW} tokens of examples/data/chronicle.txt; all "
         "but the first are scored", content)


def record_exact_perplexity(model):
    """With nothing rounded: weights, keys and values in float32."""
    with tempfile.TemporaryDirectory() as folder:
        twin = pathlib.Path(folder, "twin.gguf")
        write_twin(model, twin)
        content = chronicle_perplexity(twin, goldens.EXACT_PERPLEXITY_WINDOW, "f32")
    save("exact_perplexity.json", model.name, f"weights and KV f32; the first {goldens.EXACT_PERPLEXITY_WINDOW} tokens, as "
         "perplexity.json", content)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("parts", nargs="*")
    arguments = parser.parse_args()
    parts = {"tokens": record_tokens, "tiny": lambda model: record_tiny(), "logits": record_logits,
             "greedy": record_greedy, "exact_greedy": record_exact_greedy, "perplexity": record_perplexity,
             "exact_perplexity": record_exact_perplexity}
    for part in arguments.parts or parts:
        parts[part](arguments.model)


if __name__ == "__main__":
    main()
