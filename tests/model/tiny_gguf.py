"""Tiny models that run, with a tokenizer, as GGUF files: for tests of the program that need no real model.

    tiny_gguf.write(path)                                     2 layers, one token per byte
    tiny_gguf.write(path, **{"general.architecture": "x"})    with other keys; None leaves one out

Text of any bytes encodes to one token per byte; the weights are random, and so is what the model says.
"""

import random
import struct

import gguf_files

HIDDEN, FFN, HEADS, KV_HEADS, HEAD_DIM, LAYERS = 32, 48, 2, 1, 16, 2


def byte_letters():
    """GPT-2's: the letter that stands for each byte."""
    visible = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters, others = {byte: chr(byte) for byte in visible}, 0
    for byte in range(256):
        if byte not in letters:
            letters[byte] = chr(256 + others)
            others += 1
    return [letters[byte] for byte in range(256)]


TOKENS = [*byte_letters(), "<|end|>"]


def keys():
    return {
        "general.architecture": "llama",
        "llama.block_count": LAYERS,
        "llama.context_length": 256,
        "llama.embedding_length": HIDDEN,
        "llama.feed_forward_length": FFN,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS,
        "llama.attention.key_length": HEAD_DIM,
        "llama.attention.value_length": HEAD_DIM,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.token_type": [1] * 256 + [3],
        "tokenizer.ggml.merges": [],
        "tokenizer.ggml.eos_token_id": 256,
    }


def shapes():
    """Columns first."""
    found = {"token_embd.weight": (HIDDEN, len(TOKENS)), "output_norm.weight": (HIDDEN,)}
    for layer in range(LAYERS):
        for name, shape in {"attn_norm": (HIDDEN,), "attn_q": (HIDDEN, HEADS * HEAD_DIM),
                            "attn_k": (HIDDEN, KV_HEADS * HEAD_DIM), "attn_v": (HIDDEN, KV_HEADS * HEAD_DIM),
                            "attn_output": (HEADS * HEAD_DIM, HIDDEN), "ffn_norm": (HIDDEN,), "ffn_gate": (HIDDEN, FFN),
                            "ffn_up": (HIDDEN, FFN), "ffn_down": (FFN, HIDDEN)}.items():
            found[f"blk.{layer}.{name}.weight"] = shape
    return found


def model(**changes):
    """The bytes of the file."""
    file = gguf_files.File()
    for key, value in {**keys(), **changes}.items():
        if value is not None:
            file.add(key, value)
    numbers = random.Random(1)
    for name, shape in shapes().items():
        is_norm = len(shape) == 1
        values = [numbers.gauss(1 if is_norm else 0, 0.1 if is_norm else 0.5) for _ in range(shape[0] * (shape[1:] or (1,))[0])]
        file.tensor(name, gguf_files.F32, shape, struct.pack(f"<{len(values)}f", *values))
    return file.bytes()


def write(path, **changes):
    path.write_bytes(model(**changes))
    return path
