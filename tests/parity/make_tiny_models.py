#!/usr/bin/env python3
"""Writes tests/parity/models: tiny models with random weights, and vocabularies without tensors.

    make_tiny_models.py FOLDER [--twins FOLDER]

Needs the packages gguf and numpy. --twins writes each model again with its weights as float32: what the same model would
say if no activation were rounded. The files are kept in the tree, so that the tests need neither package.
"""

import argparse
import pathlib
import re

import numpy as np
import tiny_models
import tiny_vocabularies
from gguf import GGMLQuantizationType as Type
from gguf import GGUFWriter

ROOT = pathlib.Path(__file__).resolve().parents[2]


def training_text():
    return re.sub(r"\n(?!\n)", " ", (ROOT / "examples/data/chronicle.txt").read_text())[:12000]


def add_hyperparameters(writer, model):
    writer.add_context_length(model.context)
    writer.add_embedding_length(model.embd)
    writer.add_block_count(model.layers)
    writer.add_feed_forward_length(model.ff)
    writer.add_head_count(model.heads)
    writer.add_head_count_kv(model.kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(model.head_dim)
    if model.heads * model.head_dim != model.embd:
        writer.add_key_length(model.head_dim)
        writer.add_value_length(model.head_dim)
    for key, value in model.rope:
        add = {str: writer.add_string, float: writer.add_float32, int: writer.add_uint32}[type(value)]
        add(f"{model.arch}.rope.{key}", value)
    if model.window:
        writer.add_sliding_window(model.window)


def add_bpe(writer, pre, vocabulary):
    tokens, types, merges = vocabulary
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(tokens.index("<|im_start|>"))
    writer.add_eos_token_id(tokens.index("<|im_end|>"))
    writer.add_add_bos_token(False)


def add_sentencepiece(writer, space_prefix, vocabulary):
    tokens, types, scores = vocabulary
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_scores(scores)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(space_prefix)


def write(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_model(path, model, as_float32):
    vocabulary = tiny_vocabularies.byte_vocabulary()
    writer = GGUFWriter(path, model.arch)
    add_hyperparameters(writer, model)
    add_bpe(writer, "smollm", vocabulary)
    for name, quant_type, stored, values in tiny_models.tensors_of(model, len(vocabulary[0])):
        if as_float32 or quant_type == Type.F32:
            writer.add_tensor(name, np.ascontiguousarray(values))
        else:
            writer.add_tensor(name, stored, raw_dtype=quant_type)
    write(writer)


def write_vocabulary(path, add, *arguments):
    """A vocabulary alone. llama.cpp reads hyperparameters even then."""
    writer = GGUFWriter(path, "llama")
    add_hyperparameters(writer, tiny_models.TinyModel(path.stem))
    add(writer, *arguments)
    write(writer)


def write_all(folder, twins):
    for model in tiny_models.all_models():
        write_model(folder / f"{model.name}.gguf", model, as_float32=False)
        if twins:
            write_model(twins / f"{model.name}.gguf", model, as_float32=True)
    text = training_text()
    bpe = tiny_vocabularies.bpe_vocabulary(text)
    for pre in tiny_vocabularies.PRE_TOKENIZERS:
        write_vocabulary(folder / f"vocab-{pre}.gguf", add_bpe, pre, bpe)
    sentencepiece = tiny_vocabularies.sentencepiece_vocabulary(text)
    write_vocabulary(folder / "vocab-spm.gguf", add_sentencepiece, True, sentencepiece)
    write_vocabulary(folder / "vocab-spm-no-prefix.gguf", add_sentencepiece, False, sentencepiece)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--twins", type=pathlib.Path)
    arguments = parser.parse_args()
    for folder in filter(None, (arguments.folder, arguments.twins)):
        folder.mkdir(parents=True, exist_ok=True)
    write_all(arguments.folder, arguments.twins)


if __name__ == "__main__":
    main()
