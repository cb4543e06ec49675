"""Small GGUF files, made by hand: for tests of the program, and the fuzzer's seeds.

    File().add("general.architecture", "llama").add("llama.block_count", U32(2)).tensor("a", F32, [2], b"12345678").bytes()

A str, bool, int (U32 if nothing else is said), float (32 bits) or a list of these is a value; U8 to F64 say the type.
"""

import struct

_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
F32, F16, Q4_0, Q8_0, Q4_K = 0, 1, 2, 8, 12


class Typed:
    def __init__(self, number, value):
        self.number, self.value = number, value


def _typed(number):
    return lambda value: Typed(number, value)


U8, I8, U16, I16, U32, I32, F32_VALUE, BOOL, U64, I64, F64_VALUE = (_typed(n) for n in (0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12))


def _string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def _type_and_bytes(value):
    if isinstance(value, Typed):
        return value.number, struct.pack("<" + _FORMATS[value.number], value.value)
    if isinstance(value, (str, bytes)):
        return _STRING, _string(value)
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, int):
        return 4, struct.pack("<I", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    parts = [_type_and_bytes(one) for one in value]
    element = parts[0][0] if parts else _STRING
    return _ARRAY, struct.pack("<IQ", element, len(parts)) + b"".join(part[1] for part in parts)


def _end_of_value(data, offset, number):
    """Where the value of this type that begins at `offset` ends."""
    if number == _STRING:
        return offset + 8 + struct.unpack_from("<Q", data, offset)[0]
    if number != _ARRAY:
        return offset + struct.calcsize("<" + _FORMATS[number])
    element, count = struct.unpack_from("<IQ", data, offset)
    offset += 12
    for _ in range(count):
        offset = _end_of_value(data, offset, element)
    return offset


def without_keys(data, *prefixes):
    """The bytes of a whole file without the keys that begin with one of these; its alignment is 32."""
    num_tensors, num_keys = struct.unpack_from("<QQ", data, 8)
    kept, offset = [], 24
    for _ in range(num_keys):
        name_end = _end_of_value(data, offset, _STRING)
        end = _end_of_value(data, name_end + 4, *struct.unpack_from("<I", data, name_end))
        if not data[offset + 8:name_end].decode().startswith(prefixes):
            kept.append(data[offset:end])
        offset = end
    descriptions = offset
    for _ in range(num_tensors):
        offset = _end_of_value(data, offset, _STRING)
        offset += 4 + 8 * struct.unpack_from("<I", data, offset)[0] + 12
    head = data[:16] + struct.pack("<Q", len(kept)) + b"".join(kept) + data[descriptions:offset]
    return head + bytes(-len(head) % 32) + data[offset + -offset % 32:]


class File:
    def __init__(self, version=3, alignment=32):
        self._version, self._alignment = version, alignment
        self._keys, self._descriptions, self._data = [], [], b""
        if alignment != 32:
            self.add("general.alignment", alignment)

    def add(self, key, value):
        number, data = _type_and_bytes(value)
        self._keys.append(_string(key) + struct.pack("<I", number) + data)
        return self

    def tensor(self, name, number, shape, data):
        self._descriptions.append(_string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, number,
                                                              len(self._data)))
        self._data += data + bytes(-len(data) % self._alignment)
        return self

    def bytes(self):
        head = b"GGUF" + struct.pack("<IQQ", self._version, len(self._descriptions), len(self._keys))
        head += b"".join(self._keys) + b"".join(self._descriptions)
        return head + (bytes(-len(head) % self._alignment) if self._descriptions else b"") + self._data


def vocabulary():
    return (File().add("general.architecture", "llama").add("tokenizer.ggml.model", "gpt2")
            .add("tokenizer.ggml.pre", "smollm").add("tokenizer.ggml.tokens", ["<s>", "a", b"\x1b[2J"])
            .add("tokenizer.ggml.token_type", [I32(3), I32(1), I32(1)]).add("tokenizer.ggml.merges", ["a b"])
            .add("tokenizer.ggml.bos_token_id", 0).add("tokenizer.ggml.eos_token_id", 2))


def model():
    """One layer of a Llama, 32 wide, with nothing but zeros in it."""
    file = (vocabulary().add("general.name", "Tiny").add("llama.block_count", 1).add("llama.context_length", 128)
            .add("llama.embedding_length", 32).add("llama.feed_forward_length", 64)
            .add("llama.attention.head_count", 4).add("llama.attention.head_count_kv", 2)
            .add("llama.attention.layer_norm_rms_epsilon", 1e-5).add("llama.rope.freq_base", 10000.0))
    for name, rows in (("token_embd", 3), ("blk.0.attn_q", 32), ("blk.0.attn_k", 16), ("blk.0.attn_v", 16),
                       ("blk.0.attn_output", 32), ("blk.0.ffn_gate", 64), ("blk.0.ffn_up", 64)):
        file.tensor(f"{name}.weight", Q4_0, [32, rows], bytes(18 * rows))
    file.tensor("blk.0.ffn_down.weight", Q8_0, [64, 32], bytes(2 * 34 * 32))
    for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        file.tensor(f"{name}.weight", F32, [32], bytes(128))
    return file


def part(number, count, tensor, total):
    """One of the files of a split model."""
    file = File().add("split.no", U16(number)).add("split.count", U16(count)).add("split.tensors.count", I32(total))
    return file.tensor(tensor, F32, [2], bytes(8))
