"""What the paper (Tree Attention, arXiv 2408.04093 v4) reports, for comparison."""

# Decoding 10 tokens, in seconds: context -> (tree, ring).
DECODE_TOKENS = 10
TABLES = [
    {
        "title": "Llama-3.1-8B on 8 x H100",
        "model": "llama-3.1-8b",
        "platform": "dgx-h100",
        "ranks": 8,
        "seconds": {32000: (0.60, 2.57), 64000: (1.08, 4.42), 128000: (2.68, 6.38), 256000: (2.89, 8.19)},
    },
    {
        "title": "Llama-3.1-8B on 4 x MI300X",
        "model": "llama-3.1-8b",
        "platform": "mi300x",
        "ranks": 4,
        "seconds": {32000: (1.05, 3.57), 64000: (2.36, 7.33), 128000: (6.43, 16.40), 256000: (15.30, 35.12)},
    },
    {
        "title": "Llama-3.2-1B on 2 x RTX 4090",
        "model": "llama-3.2-1b",
        "platform": "rtx-4090",
        "ranks": 2,
        "seconds": {8000: (0.34, 1.38), 16000: (0.58, 2.77), 20000: (0.74, 3.47), 32000: (1.01, 5.45)},
    },
]

# One attention block, 16 heads of 128, on H100 nodes of 8.
BLOCK_HEADS = 16
BLOCK_HEAD_DIM = 128
BLOCK_NODES = [1, 8, 16]
BLOCK_CONTEXTS = [80_000 << i for i in range(7)]  # 80K to 5.12M
BLOCK_SPEEDUP = "close to 8x"  # tree over ring on 128 GPUs with 5.12M tokens

# Ring's peak memory less tree's on two RTX 4090, in MB, by hidden size. The formulas, 2 b t d elements of 2 bytes, give
# these figures for 64,000 tokens on each device.
MEMORY_MB = {2048: 524, 4096: 1040}
MEMORY_TOKENS_PER_DEVICE = 64_000
