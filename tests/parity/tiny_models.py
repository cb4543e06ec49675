"""What the tiny models are: one table of architectures and weight types, and the random tensors behind each.

Nothing here reads or writes files; make_tiny_models.py does. All randomness is numpy's PCG64 seeded by the model's name.
"""

import dataclasses
import zlib

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import quants

FLOAT_TYPES = [Type.F32, Type.F16, Type.BF16]
BLOCK_TYPES = [Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1]  # 32 values in a block
K_TYPES = [Type.Q2_K, Type.Q3_K, Type.Q4_K, Type.Q5_K, Type.Q6_K]      # 256 values in a block


@dataclasses.dataclass(frozen=True)
class TinyModel:
    """A model of a few hundred KB. `rope` is metadata below `<arch>.rope.`; `window` is Mistral's sliding window."""

    name: str
    arch: str = "llama"
    type: Type = Type.F16
    embd: int = 64
    ff: int = 96
    heads: int = 2
    kv_heads: int = 1
    head_dim: int = 64
    layers: int = 2
    tied: bool = True
    rope: tuple = ()
    rope_freqs: bool = False
    window: int = 0
    context: int = 512

    @property
    def biases(self):
        return self.arch == "qwen2"

    @property
    def qk_norms(self):
        return self.arch == "qwen3"


def all_models():
    """Every weight type in the llama architecture, then every architecture and way to scale RoPE."""
    models = [TinyModel(f"llama-{t.name.lower()}", type=t) for t in FLOAT_TYPES + BLOCK_TYPES]
    # A row is at least one block of 256; that makes one layer as large as several of the others.
    models += [TinyModel(f"llama-{t.name.lower()}", type=t, embd=256, ff=256, head_dim=128, layers=1) for t in K_TYPES]
    models += [
        TinyModel("llama-untied", tied=False, heads=3, kv_heads=3, layers=1),
        TinyModel("llama-rope-freqs", rope_freqs=True, rope=(("freq_base", 500000.0),)),
        TinyModel("llama-rope-linear", rope=(("scaling.type", "linear"), ("scaling.factor", 4.0))),
        TinyModel("llama-rope-yarn", rope=(("scaling.type", "yarn"), ("scaling.factor", 4.0),
                                           ("scaling.original_context_length", 32))),
        TinyModel("llama-window", window=24),
        TinyModel("qwen2", arch="qwen2", embd=128, ff=64, layers=1),
        TinyModel("qwen3", arch="qwen3", head_dim=128, rope=(("freq_base", 1000000.0),)),
    ]
    return models


def generator_of(*words):
    return np.random.Generator(np.random.PCG64(zlib.crc32("/".join(words).encode())))


def normal(random, shape, scale):
    """Normal enough, and the same whatever numpy's version: the sum of twelve 16-bit integers."""
    total = random.integers(0, 1 << 16, size=(12, *shape), dtype=np.int64).sum(axis=0)
    return ((total / 65536.0 - 6.0) * scale).astype(np.float32)


def random_k_blocks(random, quant_type, rows, columns):
    """Rows of valid K blocks: every bit of scales and quants random, float16 scales such that values are about
    normal(0, 1/sqrt(columns)); minima take the mean away, as those of real files do."""
    blocks = rows * columns // 256
    value = 1.0 / np.sqrt(columns)

    def scales(mean):
        sign = 1 if quant_type in (Type.Q2_K, Type.Q4_K, Type.Q5_K) else random.choice([-1, 1], size=(blocks, 1))
        return (sign * mean * (0.5 + random.integers(0, 1 << 16, size=(blocks, 1)) / 65536.0)).astype(np.float16)

    def as_bytes(array):
        return np.ascontiguousarray(array).view(np.uint8).reshape(blocks, -1)

    def noise(count):
        return random.integers(0, 256, size=(blocks, count), dtype=np.uint8)

    if quant_type == Type.Q2_K:    # scales[16], qs[64], d, dmin
        d = scales(value / 11.0)
        parts = [noise(16), noise(64), as_bytes(d), as_bytes((d * np.float16(1.5)).astype(np.float16))]
    elif quant_type == Type.Q3_K:  # hmask[32], qs[64], scales[12], d
        parts = [noise(32), noise(64), noise(12), as_bytes(scales(value / 42.0))]
    elif quant_type == Type.Q4_K:  # d, dmin, scales[12], qs[128]
        d = scales(value / 240.0)
        parts = [as_bytes(d), as_bytes((d * np.float16(7.5)).astype(np.float16)), noise(12), noise(128)]
    elif quant_type == Type.Q5_K:  # d, dmin, scales[12], qh[32], qs[128]
        d = scales(value / 480.0)
        parts = [as_bytes(d), as_bytes((d * np.float16(15.5)).astype(np.float16)), noise(12), noise(32), noise(128)]
    elif quant_type == Type.Q6_K:  # ql[128], qh[64], scales[16], d
        parts = [noise(128), noise(64), noise(16), as_bytes(scales(value / 1360.0))]
    else:
        raise ValueError(f"{quant_type.name} has no blocks of 256")
    return np.concatenate(parts, axis=1).reshape(rows, -1)


def random_matrix(random, quant_type, rows, columns):
    """The matrix as it lies in the file, and the same in float32."""
    if quant_type in K_TYPES:
        stored = random_k_blocks(random, quant_type, rows, columns)
    else:
        stored = quants.quantize(normal(random, (rows, columns), 1.0 / np.sqrt(columns)), quant_type)
    values = quants.dequantize(stored, quant_type)
    assert values.shape == (rows, columns) and np.isfinite(values).all()
    assert 0.3 < values.std() * np.sqrt(columns) < 3.0, (quant_type, values.std() * np.sqrt(columns))
    return stored, values


def llama3_rope_factors(head_dim, base):
    """Llama 3.1's divisors of the frequencies: factor 8, low 1, high 4, original context 32 (there 8192)."""
    frequencies = base ** (-np.arange(0, head_dim, 2) / head_dim)
    wavelengths = 2 * np.pi / frequencies
    smooth = (32 / wavelengths - 1.0) / (4.0 - 1.0)
    between = 1.0 / ((1.0 - smooth) / 8.0 + smooth)
    return np.where(wavelengths < 32 / 4.0, 1.0, np.where(wavelengths > 32 / 1.0, 8.0, between)).astype(np.float32)


def tensors_of(model, vocab_size):
    """Yields (name, type, as stored, as float32)."""
    random = generator_of("tensors", model.name)

    def matrix(name, rows, columns):
        stored, values = random_matrix(random, model.type, rows, columns)
        return name, model.type, stored, values

    def vector(name, size, mean, scale):
        values = np.float32(mean) + normal(random, (size,), scale)
        return name, Type.F32, values, values

    q_rows, kv_rows = model.heads * model.head_dim, model.kv_heads * model.head_dim
    yield matrix("token_embd.weight", vocab_size, model.embd)
    if model.rope_freqs:
        factors = llama3_rope_factors(model.head_dim, dict(model.rope)["freq_base"])
        yield "rope_freqs.weight", Type.F32, factors, factors
    for layer in range(model.layers):
        block = f"blk.{layer}."
        yield vector(block + "attn_norm.weight", model.embd, 1.0, 0.1)
        for part, rows in (("q", q_rows), ("k", kv_rows), ("v", kv_rows)):
            yield matrix(f"{block}attn_{part}.weight", rows, model.embd)
            if model.biases:
                yield vector(f"{block}attn_{part}.bias", rows, 0.0, 0.3)
        if model.qk_norms:
            yield vector(block + "attn_q_norm.weight", model.head_dim, 1.0, 0.2)
            yield vector(block + "attn_k_norm.weight", model.head_dim, 1.0, 0.2)
        yield matrix(block + "attn_output.weight", model.embd, q_rows)
        yield vector(block + "ffn_norm.weight", model.embd, 1.0, 0.1)
        yield matrix(block + "ffn_gate.weight", model.ff, model.embd)
        yield matrix(block + "ffn_up.weight", model.ff, model.embd)
        yield matrix(block + "ffn_down.weight", model.embd, model.ff)
    yield vector("output_norm.weight", model.embd, 1.0, 0.1)
    if not model.tied:
        yield matrix("output.weight", vocab_size, model.embd)
