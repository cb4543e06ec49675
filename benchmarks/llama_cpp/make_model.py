#!/usr/bin/env python3
"""Writes a model of any shape and weight type with random weights, which Pando and llama.cpp load.

    python="$(benchmarks/llama_cpp/compare --python)"
    "$python" benchmarks/llama_cpp/make_model.py llama-1b-q4_k.gguf --type q4_k
    "$python" benchmarks/llama_cpp/make_model.py small.gguf --type f16 --layers 4 --hidden 1024 --heads 16 --kv-heads 4 --ff 4096

The default shape is that of Llama-3.2-1B. What such a model says means nothing; how fast it is does not depend on that. The
vocabulary is made of bytes and of unused tokens up to its size. Needs the packages gguf and numpy.
"""

import argparse
import pathlib

import numpy as np
from gguf import GGML_QUANT_SIZES, GGUFWriter, TokenType
from gguf import GGMLQuantizationType as Type

# Where a block has its float16 numbers and how large they are, so that weights have a standard deviation of about 0.02 and
# a mean of about 0. All other bits of a block are random.
HALVES = {
    Type.Q8_0: [(0, 0.02 / 74)],
    Type.Q4_0: [(0, 0.02 / 4.6)],
    Type.Q4_1: [(0, 0.02 / 4.6), (2, -0.02 / 4.6 * 7.5)],
    Type.Q5_0: [(0, 0.02 / 9.2)],
    Type.Q5_1: [(0, 0.02 / 9.2), (2, -0.02 / 9.2 * 15.5)],
    Type.Q2_K: [(80, 0.02 / 9), (82, 0.02 / 9 * 1.5)],
    Type.Q3_K: [(108, 0.02 / 40)],
    Type.Q4_K: [(0, 0.02 / 170), (2, 0.02 / 170 * 7.5)],
    Type.Q5_K: [(0, 0.02 / 340), (2, 0.02 / 340 * 15.5)],
    Type.Q6_K: [(208, 0.02 / 1360)],
}
# Floats are random but for their exponents, which are those of 2^-8 to 2^-5: the number without sign and mantissa, bits
# of the mantissa.
EXPONENTS = {Type.F16: (np.uint16, 7, 10), Type.BF16: (np.uint16, 119, 7), Type.F32: (np.uint32, 119, 23)}


def random_matrix(rows, columns, kind, source):
    """The bytes of a matrix, [rows][bytes of a row]."""
    values, block_bytes = GGML_QUANT_SIZES[kind]
    if columns % values != 0:
        raise SystemExit(f"make_model: rows of {columns} columns are not made of {kind.name}'s blocks of {values}")
    data = np.frombuffer(source.bytes(rows * columns // values * block_bytes), np.uint8).copy()
    if kind in EXPONENTS:
        number, exponent, mantissa_bits = EXPONENTS[kind]
        words = data.view(number)
        sign_bit = 1 << (words.itemsize * 8 - 1)
        words &= number(sign_bit | ((4 << mantissa_bits) - 1))  # the sign, two bits of the exponent, the mantissa
        words += number(exponent << mantissa_bits)
    else:
        blocks = data.reshape(-1, block_bytes)
        for offset, value in HALVES[kind]:
            blocks[:, offset:offset + 2] = np.frombuffer(np.float16(value).tobytes(), np.uint8)
    return data.reshape(rows, -1)


def matrices(shape):
    """(name, rows, columns) of everything that is not a norm."""
    head_dim = shape.head_dim or shape.hidden // shape.heads
    yield "token_embd", shape.vocabulary, shape.hidden
    for layer in range(shape.layers):
        yield f"blk.{layer}.attn_q", shape.heads * head_dim, shape.hidden
        yield f"blk.{layer}.attn_k", shape.kv_heads * head_dim, shape.hidden
        yield f"blk.{layer}.attn_v", shape.kv_heads * head_dim, shape.hidden
        yield f"blk.{layer}.attn_output", shape.hidden, shape.heads * head_dim
        yield f"blk.{layer}.ffn_gate", shape.ff, shape.hidden
        yield f"blk.{layer}.ffn_up", shape.ff, shape.hidden
        yield f"blk.{layer}.ffn_down", shape.hidden, shape.ff
    if shape.untied:
        yield "output", shape.vocabulary, shape.hidden


def norms(shape):
    for layer in range(shape.layers):
        yield f"blk.{layer}.attn_norm"
        yield f"blk.{layer}.ffn_norm"
    yield "output_norm"


def add_hyperparameters(writer, shape):
    head_dim = shape.head_dim or shape.hidden // shape.heads
    writer.add_context_length(131072)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.ff)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_dimension_count(head_dim)
    writer.add_rope_freq_base(500000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(shape.vocabulary)


def add_vocabulary(writer, size):
    """Bytes as GPT-2 writes them, two control tokens, and unused ones."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}
    tokens = [letters[byte] for byte in range(256)] + ["<|im_start|>", "<|im_end|>", letters[32] + "t"]
    types = [TokenType.NORMAL] * 256 + [TokenType.CONTROL] * 2 + [TokenType.NORMAL]
    if size < len(tokens):
        raise SystemExit(f"make_model: a vocabulary has at least {len(tokens)} tokens")
    unused = range(len(tokens), size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens + [f"<|unused_{token}|>" for token in unused])
    writer.add_token_types(types + [TokenType.UNUSED] * len(unused))
    writer.add_token_merges([f"{letters[32]} t"])
    writer.add_bos_token_id(256)
    writer.add_eos_token_id(257)
    writer.add_add_bos_token(False)


def write_model(path, shape):
    kind = Type[shape.type.upper()]
    embedding_kind = Type[(shape.embedding_type or shape.type).upper()]
    writer = GGUFWriter(path, "llama")
    add_hyperparameters(writer, shape)
    add_vocabulary(writer, shape.vocabulary)
    kind_of = lambda name: embedding_kind if name in ("token_embd", "output") else kind
    for name, rows, columns in matrices(shape):
        values, block_bytes = GGML_QUANT_SIZES[kind_of(name)]
        row_bytes = columns // values * block_bytes
        writer.add_tensor_info(f"{name}.weight", (rows, row_bytes), np.dtype(np.uint8), rows * row_bytes, kind_of(name))
    for name in norms(shape):
        writer.add_tensor_info(f"{name}.weight", (shape.hidden,), np.dtype(np.float32), shape.hidden * 4)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    source = np.random.default_rng(shape.seed)
    for name, rows, columns in matrices(shape):
        writer.write_tensor_data(random_matrix(rows, columns, kind_of(name), source))
    for _ in norms(shape):
        writer.write_tensor_data(np.ones(shape.hidden, np.float32))
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=pathlib.Path)
    parser.add_argument("--type", default="q4_0", help="of all matrices: f32, f16, bf16, q8_0, q4_0, ... q6_k [q4_0]")
    parser.add_argument("--embedding-type", help="of the embedding and the output [as --type]")
    for name, value in {"layers": 16, "hidden": 2048, "heads": 32, "kv-heads": 8, "head-dim": 0, "ff": 8192,
                        "vocabulary": 128256, "seed": 1}.items():
        parser.add_argument(f"--{name}", type=int, default=value, help=f"[{value or 'hidden / heads'}]")
    parser.add_argument("--untied", action="store_true", help="with an output matrix of its own")
    shape = parser.parse_args()
    known = {kind.name.lower() for kind in [*HALVES, *EXPONENTS]}
    for kind in filter(None, (shape.type, shape.embedding_type)):
        if kind.lower() not in known:
            raise SystemExit(f"make_model: there is no type {kind}: the types are {', '.join(sorted(known))}")
    write_model(shape.path, shape)


if __name__ == "__main__":
    main()
