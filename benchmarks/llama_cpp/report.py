"""What was compared, as markdown for people. The JSON beside it is the data itself."""


def render(result):
    sections = [f"# Pando and llama.cpp\n\n{result['pando']}. {result['note']}. {result['system_info']}\n"]
    for part, write in (("speed", _speed), ("tokens", _tokens), ("logits", _logits), ("greedy", _greedy), ("exact", _exact),
                        ("perplexity", _perplexity)):
        if part in result:
            sections.append(write(result[part], result))
    return "\n".join(sections)


def _speed(rows, result):
    lines = [f"## Speed: tokens/s, {result['threads']} threads, median (least to most) of {result['rounds']}\n",
             "| test | Pando | llama.cpp, flash attention off | on | ratio to the better |", "|---|---:|---:|---:|---:|"]
    for row in rows:
        cells = [f"{_median(row, side):.1f} ({row['spread'][side][0]:.1f} to {row['spread'][side][1]:.1f})"
                 for side in ("pando", "flash_off", "flash_on")]
        lines.append(f"| {row['test']} | {' | '.join(cells)} | {row['ratio']:.2f} |")
    lines.append(f"\nPython adds {result['python_overhead_us']:.0f} us to a token of llama.cpp's. Load before: "
                 + ", ".join(f"{row['load_before']:.1f}" for row in rows) + ".\n")
    return "\n".join(lines)


def _median(row, side):
    values = sorted(row["samples"][side])
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def _tokens(tokens, _):
    lines = ["## Tokens of the corpus\n"]
    parted = [row for row in tokens["files"] if row["parts_at"] is not None]
    lines += [f"- {row['file']} (special: {row['special']}): the two part at token {row['parts_at']}" for row in parted]
    total = sum(row["tokens"] for row in tokens["files"])
    return "\n".join([*lines, f"{len(tokens['files']) - len(parted)} of {len(tokens['files'])} texts equal, {total} tokens.\n"])


def _logits(logits, _):
    lines = ["## Logits behind prompts\n", "| prompt ends | tokens | rms apart | most apart | same likeliest |", "|---|---:|---:|---:|---|"]
    lines += [f"| {_excerpt(row['prompt'])} | {row['tokens']} | {row['rms']:.3f} | {row['max']:.3f} | "
              f"{'yes' if row['likeliest_equal'] else 'no'} |" for row in logits["prompts"]]
    return "\n".join(lines) + "\n"


def _greedy(greedy, _):
    lines = ["## Greedy text, 32 tokens\n"]
    for kind, content in greedy.items():
        count = len(content["prompts"])
        lines += [f"{kind.capitalize()} prompts: Pando equals llama.cpp on {content['pando_equal']} of {count}, llama.cpp "
                  f"with flash attention equals llama.cpp without on {content['flash_attention_equal']} of {count}.\n",
                  "| prompt ends | Pando parts at token | candidates apart | llama.cpp parts from itself at | candidates apart |",
                  "|---|---:|---:|---:|---:|"]
        lines += [f"| {_excerpt(row['prompt'])} | {_parting(row['pando'])} | {_parting(row['flash_attention'])} |"
                  for row in content["prompts"]]
        lines.append("")
    return "\n".join(lines)


def _exact(exact, _):
    return ("## Greedy text with weights, keys and values in float32\n\n"
            f"Pando equals llama.cpp on {exact['equal']} of {len(exact['prompts'])} prompts.\n")


def _parting(row):
    return "- | -" if row["parts_at"] is None else f"{row['parts_at']} | {row['margin']:.3f}"


def _perplexity(perplexity, _):
    lines = ["## Perplexity of 4096 tokens\n",
             "| KV | Pando | llama.cpp | ratio | llama.cpp, flash attention | ratio |", "|---|---:|---:|---:|---:|---:|"]
    lines += [f"| {kv_type} | {row['pando']:.4f} | {row['llama_cpp']:.4f} | {row['ratio']:.5f} | "
              f"{row['llama_cpp_flash_attention']:.4f} | {row['flash_attention_ratio']:.5f} |"
              for kv_type, row in perplexity.items()]
    return "\n".join(lines) + "\n"


def _excerpt(prompt):
    return "`" + prompt[-32:].replace("\n", " ").replace("|", " ") + "`"
