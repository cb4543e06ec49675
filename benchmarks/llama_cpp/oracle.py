"""llama.cpp through the ctypes interface of llama-cpp-python: tokens, logits, greedy text, perplexity and speed.

    with Oracle("model.gguf", context=4096) as oracle:
        tokens = oracle.tokenize(b"Hello")
        logits = oracle.logits(tokens)            # [token][vocabulary]

Runs in the virtual environment that environment.py makes; nothing else of the project imports it.
"""

import ctypes
import math
import time

import llama_cpp as api
import numpy as np

KV_TYPES = {"f32": 0, "f16": 1, "q8_0": 8}

# Kept for as long as the process lives: llama.cpp holds the pointer.
_QUIET = api.llama_log_callback(lambda level, text, data: None)


def describe():
    """Versions and the instruction sets llama.cpp was compiled for."""
    return {"llama_cpp_python": api.__version__, "system_info": api.llama_print_system_info().decode().strip()}


class Oracle:
    def __init__(self, path, context=0, kv_type="f16", flash_attention=False, threads=2, vocabulary_only=False,
                 chunk=512):
        api.llama_log_set(_QUIET, ctypes.c_void_p(0))
        api.llama_backend_init()
        parameters = api.llama_model_default_params()
        parameters.vocab_only = vocabulary_only
        self._context = None
        self._model = api.llama_model_load_from_file(str(path).encode(), parameters)
        if not self._model:
            raise RuntimeError(f"llama.cpp cannot read {path}")
        self._vocabulary = api.llama_model_get_vocab(self._model)
        self.vocabulary_size = api.llama_vocab_n_tokens(self._vocabulary)
        self.chunk = chunk
        if not vocabulary_only:
            self._context = api.llama_init_from_model(
                self._model, _context_parameters(context, kv_type, flash_attention, threads, chunk))
            if not self._context:
                raise RuntimeError(f"llama.cpp cannot make a context of {context} tokens for {path}")
            self._memory = api.llama_get_memory(self._context)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._context:
            api.llama_free(self._context)
        api.llama_model_free(self._model)

    def tokenize(self, text, add_special=False, parse_special=False):
        """Tokens of a byte string, however it is encoded."""
        capacity = 3 * len(text) + 16  # a byte that is no text becomes U+FFFD: three bytes, at most three tokens
        tokens = (api.llama_token * capacity)()
        count = api.llama_tokenize(self._vocabulary, text, len(text), tokens, capacity, add_special, parse_special)
        if count < 0:
            raise RuntimeError(f"llama.cpp needs {-count} tokens where at most {capacity} were expected")
        return list(tokens[:count])

    def detokenize(self, tokens, special=True):
        capacity = 64 + 64 * len(tokens)
        text = ctypes.create_string_buffer(capacity)
        array = (api.llama_token * len(tokens))(*tokens)
        count = api.llama_detokenize(self._vocabulary, array, len(tokens), text, capacity, False, special)
        return text.raw[:count]

    def forget(self, from_position=0):
        """Takes the tokens from this position on out of the cache."""
        if from_position == 0:
            api.llama_memory_clear(self._memory, False)
        else:
            api.llama_memory_seq_rm(self._memory, 0, from_position, -1)

    def decode(self, tokens):
        """Appends at most one chunk of tokens; the last one's logits can be read."""
        array = (api.llama_token * len(tokens))(*tokens)
        if api.llama_decode(self._context, api.llama_batch_get_one(array, len(tokens))) != 0:
            raise RuntimeError(f"llama.cpp cannot decode {len(tokens)} tokens")

    def prefill(self, tokens):
        for first in range(0, len(tokens), self.chunk):
            self.decode(tokens[first:first + self.chunk])

    def last_logits(self):
        return np.ctypeslib.as_array(api.llama_get_logits_ith(self._context, -1), (self.vocabulary_size,)).copy()

    def logits(self, tokens):
        """Logits behind every token of a text that begins at position 0: float32 [token][vocabulary]."""
        return np.concatenate([block for _, block in self._logit_chunks(tokens)])

    def _logit_chunks(self, tokens):
        """Yields (position of the first, [token][vocabulary]) for chunk after chunk."""
        self.forget()
        batch = api.llama_batch_init(self.chunk, 0, 1)
        for first in range(0, len(tokens), self.chunk):
            part = tokens[first:first + self.chunk]
            batch.n_tokens = len(part)
            for i, token in enumerate(part):
                batch.token[i], batch.pos[i], batch.n_seq_id[i] = token, first + i, 1
                batch.seq_id[i][0], batch.logits[i] = 0, 1
            if api.llama_decode(self._context, batch) != 0:
                raise RuntimeError("llama.cpp cannot decode")
            rows = api.llama_get_logits(self._context)
            yield first, np.ctypeslib.as_array(rows, (len(part), self.vocabulary_size)).copy()
        api.llama_batch_free(batch)

    def windowed_logits(self, tokens, window):
        """Logits behind the last token where each token sees `window` tokens, itself among them.

        llama.cpp ignores the window of architecture llama, so tokens go one by one and leave the cache when they are out
        of sight, which comes to the same in every layer.
        """
        self.forget()
        for position, token in enumerate(tokens):
            if position >= window:
                api.llama_memory_seq_rm(self._memory, 0, 0, position - window + 1)
            self.decode([token])
        return self.last_logits()

    def greedy(self, tokens, count):
        """The `count` likeliest continuations, and for each the two highest (token, logit)."""
        self.forget()
        self.prefill(tokens)
        chosen, candidates = [], []
        for _ in range(count):
            logits = self.last_logits()
            best = np.argsort(-logits, kind="stable")[:2]
            candidates.append([[int(token), float(logits[token])] for token in best])
            chosen.append(int(best[0]))
            self.decode(chosen[-1:])
        return chosen, candidates

    def perplexity(self, tokens, window, stride):
        """exp of the mean negative log-likelihood, over windows that begin `stride` tokens apart and are each read from their
        own start; of each the last `stride` tokens count. (perplexity, tokens that count)."""
        begins = range(0, len(tokens) - window + 1, stride)
        total = sum(self._surprise(tokens[begin:begin + window], stride) for begin in begins)
        return math.exp(total / (stride * len(begins))), stride * len(begins)

    def _surprise(self, tokens, count):
        """The negative log-likelihood of the last `count` tokens together."""
        total = 0.0
        for first, logits in self._logit_chunks(tokens):
            positions = np.array([i for i in range(first, first + len(logits)) if len(tokens) - 1 - count <= i < len(tokens) - 1])
            if len(positions) == 0:
                continue
            rows = logits[positions - first].astype(np.float64)
            highest = rows.max(axis=1)
            log_sums = highest + np.log(np.exp(rows - highest[:, None]).sum(axis=1))
            total += float((log_sums - rows[np.arange(len(rows)), np.array(tokens)[positions + 1]]).sum())
        return total

    def time_prompt(self, tokens, depth):
        """Seconds for a prompt behind `depth` tokens that are in the cache already; the cache is as before then."""
        begin = time.perf_counter()
        self.prefill(tokens)
        seconds = time.perf_counter() - begin
        self.forget(depth)
        return seconds

    def time_decode(self, tokens, depth):
        """The same for tokens that come one at a time, with the logits of each."""
        arrays = [(api.llama_token * 1)(token) for token in tokens]
        begin = time.perf_counter()
        for array in arrays:
            api.llama_decode(self._context, api.llama_batch_get_one(array, 1))
            api.llama_get_logits_ith(self._context, -1)
        seconds = time.perf_counter() - begin
        self.forget(depth)
        return seconds


def _context_parameters(context, kv_type, flash_attention, threads, chunk):
    parameters = api.llama_context_default_params()
    parameters.n_ctx = context
    parameters.n_batch = parameters.n_ubatch = chunk
    parameters.n_threads = parameters.n_threads_batch = threads
    parameters.type_k = parameters.type_v = KV_TYPES[kv_type]
    parameters.flash_attn_type = int(flash_attention)
    parameters.no_perf = True
    return parameters
