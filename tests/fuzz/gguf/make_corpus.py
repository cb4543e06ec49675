#!/usr/bin/env python3
"""Makes the seeds that the GGUF fuzzer starts from.

    tests/fuzz/gguf/make_corpus.py             writes them to corpus/
    tests/fuzz/gguf/make_corpus.py --check     exit code 1 if corpus/ is not what it would write
"""

import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parents[1] / "model"))
import gguf_files as gguf  # noqa: E402


def every_type():
    return (gguf.File().add("u8", gguf.U8(200)).add("i8", gguf.I8(-3)).add("u16", gguf.U16(60000)).add("i16", gguf.I16(-9))
            .add("u32", 7).add("i32", gguf.I32(-7)).add("u64", gguf.U64(1 << 63)).add("i64", gguf.I64(-1 << 62))
            .add("f32", 0.5).add("f64", gguf.F64_VALUE(0.25)).add("bool", True).add("text", "text")
            .add("texts", ["a", "", "bcd"]).add("floats", [1.5, -2.0]).add("doubles", [gguf.F64_VALUE(1.0)])
            .add("ints", [gguf.I32(1), gguf.I32(-1)]).add("bytes", [gguf.U8(1)] * 5).add("bools", [True, False])
            .add("none", []))


def seeds():
    tensors = gguf.File(alignment=64)
    tensors.tensor("scalar", gguf.F32, [], bytes(4)).tensor("deep", gguf.F16, [2, 3, 1, 2], bytes(24))
    tensors.tensor("blocks", gguf.Q4_K, [256, 2], bytes(288)).tensor("row", gguf.Q8_0, [32], bytes(34))
    return {
        "empty.gguf": gguf.File().bytes(),
        "version2.gguf": gguf.File(version=2).add("general.architecture", "llama").bytes(),
        "version1.gguf": gguf.File(version=1).bytes(),
        "big_endian.gguf": gguf.File(version=3 << 24).bytes(),
        "every_type.gguf": every_type().bytes(),
        "tensors.gguf": tensors.bytes(),
        "unaligned.gguf": gguf.File(alignment=1).tensor("a", gguf.F32, [1], bytes(4)).bytes(),
        "vocabulary.gguf": gguf.vocabulary().bytes(),
        "part.gguf": gguf.part(0, 2, "a", 2).bytes(),
        "model.gguf": gguf.model().bytes(),
        "truncated.gguf": gguf.model().bytes()[:-200],
        "twice.gguf": gguf.File().add("a", 1).add("a", 1).bytes(),
    }


def main():
    corpus = FOLDER / "corpus"
    wanted = seeds()
    if "--check" in sys.argv[1:]:
        found = {path.name: path.read_bytes() for path in corpus.iterdir()}
        wrong = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
        if wrong:
            sys.exit(f"{corpus} is not what make_corpus.py writes ({', '.join(wrong)}): run it")
        return
    corpus.mkdir(exist_ok=True)
    for path in corpus.iterdir():
        path.unlink()
    for name, contents in wanted.items():
        (corpus / name).write_bytes(contents)


if __name__ == "__main__":
    main()
