// Pando in C, for C and for languages that call C: what attention.h and communicator.h do in C++.
//
//   pando_attention_options options;
//   pando_attention_options_init(&options);
//   options.num_heads = 32;
//   pando_attention* attention = NULL;
//   if (pando_attention_create_alone(&options, &attention) != PANDO_OK) puts(pando_last_error());
//   ...
//   pando_attention_destroy(attention);
//
// All ranks make the same calls with the same arguments, in the same order; each keeps the tokens of the slots it owns
// and all of them get the results. What a rank would have to wait for has a deadline. If a call fails on some ranks for
// a reason of their own (memory), the group is no longer in step: make a new one, or load a snapshot. One thread at a
// time uses a communicator and what was made with it.
//
// A call that fails says why in pando_last_error() and has written nothing to where its results go, except that output
// and lse may be half written. An array is a pointer and the number of its elements; where that is 0 the pointer may be
// NULL. No other pointer may be NULL, and none that is crashes.
#ifndef PANDO_PANDO_H_
#define PANDO_PANDO_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The names are those of C: NOLINTBEGIN(readability-identifier-naming)

typedef int32_t pando_status;
enum {
  PANDO_OK = 0,
  PANDO_INVALID_ARGUMENT = 1,  // The caller's value is wrong; calling again unchanged fails again.
  PANDO_OUT_OF_MEMORY = 2,     // The machine does not have what was asked for.
  PANDO_FAILED = 3             // Something outside went wrong while running: a file, a peer, the system.
};

// One sentence on the last call of this thread that failed; "" if none has. Stays until the next one that fails.
const char* pando_last_error(void);

// ---- Communicators: one rank's end of a group.

typedef struct pando_communicator pando_communicator;

// Structs begin with their size, by which a library knows which fields a caller was compiled with: fields may be added
// at the end. The init functions set it, and each field to its default.
typedef struct pando_communicator_options {
  size_t struct_size;
  int64_t timeout_ms;  // for each wait: 30000; at least 1
  // MPI only, and may be NULL: called by another thread, with a sentence, when a call that MPI gives no way to call off
  // does not come back in time. All that is left to do then is to print it and to leave by _Exit. Without it such a
  // call may hang for ever.
  void (*on_stuck)(const char* sentence, void* user);
  void* user;  // for on_stuck, may be NULL
} pando_communicator_options;

pando_status pando_communicator_options_init_size(pando_communicator_options* options, size_t struct_size);
static inline pando_status pando_communicator_options_init(pando_communicator_options* options) {
  return pando_communicator_options_init_size(options, sizeof(*options));
}

// A group of one.
pando_status pando_communicator_create_alone(pando_communicator** communicator);

// communicators: room for num_ranks; element r becomes rank r, for a thread of its own. A rank that is destroyed has
// left: who waits for it is told at once.
pando_status pando_communicator_create_in_process(int64_t num_ranks, const pando_communicator_options* options,
                                                  pando_communicator** communicators);

// All processes that mpirun started; every one of them calls it. MPI is initialised where it is not yet, and then
// finalised when the communicator is destroyed, by the same thread. After a failure the process must leave by _Exit:
// MPI would wait for the lost rank.
pando_status pando_communicator_create_mpi(const pando_communicator_options* options,
                                           pando_communicator** communicator);

// 1 or 0: whether mpirun (or srun) started this process; whether this library can do MPI.
int pando_started_by_mpirun(void);
int pando_built_with_mpi(void);

// NULL is fine. What was made with the communicator keeps it in use until it is destroyed too.
void pando_communicator_destroy(pando_communicator* communicator);

pando_status pando_communicator_get_rank(const pando_communicator* communicator, int64_t* rank);
pando_status pando_communicator_get_size(const pando_communicator* communicator, int64_t* size);
// "inproc" or "mpi", for as long as the communicator is there.
pando_status pando_communicator_get_transport(const pando_communicator* communicator, const char** transport);

// Waits until all ranks have called it.
pando_status pando_communicator_barrier(pando_communicator* communicator);

// ---- Attention over a KV cache that ranks share.

typedef struct pando_attention pando_attention;

enum {
  PANDO_KV_F32 = 0,
  PANDO_KV_F16 = 1,   // IEEE binary16
  PANDO_KV_BF16 = 2,  // the upper half of a float32
  PANDO_KV_Q8_0 = 3   // blocks of 32 signed bytes along the head dim with one float16 scale
};

typedef struct pando_attention_options {
  size_t struct_size;
  int64_t num_heads;     // 1
  int64_t num_kv_heads;  // 1; divides num_heads: query heads in groups share a KV head
  int64_t head_dim;      // 64; a multiple of 8
  int64_t num_layers;    // 1
  int32_t k_type;        // PANDO_KV_F16
  int32_t v_type;        // PANDO_KV_F16
  float scale;           // of the scores; NaN, the default: 1 / sqrt(head_dim)
  float softcap;         // scores become softcap * tanh(score / softcap); 0, the default: none
  int64_t window;        // a token sees the last `window` tokens, itself included; 0, the default: all
  const float* sinks;    // one score per query head that takes part with a zero value; or none, the default
  size_t num_sinks;
  int64_t num_slots;           // 64; of the canonical tree, a power of two: at most this many ranks
  int64_t chunk_tokens;        // 64; for one num_slots and chunk_tokens the bits are fixed
  const char* strategy;        // "tree"; the others are in attention.h
  const double* rank_weights;  // by rank: its share of the slots, in any unit; or none, the default: equal shares
  size_t num_rank_weights;
  int64_t num_threads;  // of each rank; 0, the default: the machine's cores, shared by the ranks on it
} pando_attention_options;

pando_status pando_attention_options_init_size(pando_attention_options* options, size_t struct_size);
static inline pando_status pando_attention_options_init(pando_attention_options* options) {
  return pando_attention_options_init_size(options, sizeof(*options));
}

// The last `num_queries` tokens of a sequence.
typedef struct pando_sequence_queries {
  int64_t sequence;
  int64_t num_queries;
} pando_sequence_queries;

// Memory for keys and values on this rank, in bytes.
typedef struct pando_memory {
  size_t struct_size;  // set by the caller
  int64_t used;        // pages with tokens, those that sequences share counted once
  int64_t shared;      // of these, what more than one sequence uses
  int64_t allocated;   // used, and kept for later
  int64_t buffers;     // for the shards of other ranks (ring)
} pando_memory;

// The last decode or prefill on this rank.
typedef struct pando_step_report {
  size_t struct_size;    // set by the caller
  const char* schedule;  // what the strategy came to; valid until the next report of the same attention
  double compute_seconds;
  double merge_seconds;  // messages and merging, with the wait for slower ranks; 0 for ring, which overlaps them
  uint64_t messages_sent;
  uint64_t bytes_sent;
} pando_step_report;

// As one rank of a group.
pando_status pando_attention_create(pando_communicator* communicator, const pando_attention_options* options,
                                    pando_attention** attention);
// Without other ranks.
pando_status pando_attention_create_alone(const pando_attention_options* options, pando_attention** attention);
// NULL is fine.
void pando_attention_destroy(pando_attention* attention);

pando_status pando_attention_add_sequence(pando_attention* attention, int64_t* sequence);
// A new sequence with the tokens of `parent`. Full pages are shared.
pando_status pando_attention_fork_sequence(pando_attention* attention, int64_t parent, int64_t* sequence);
pando_status pando_attention_remove_sequence(pando_attention* attention, int64_t sequence);

// Removes the tokens from position `num_tokens` on, in all layers; what follows is as if they had never been there.
// Sequences that share pages with it keep theirs. With a window, only as far back as the next token still sees all that
// it should. On failure nothing is removed.
pando_status pando_attention_truncate(pando_attention* attention, int64_t sequence, int64_t num_tokens);

// Gets the memory for a sequence of `num_tokens` tokens now, or says that the machine does not have it.
pando_status pando_attention_reserve(pando_attention* attention, int64_t num_tokens);

// Adds tokens at the end of one layer of a sequence. k and v: [tokens][num_kv_heads][head_dim]. On failure nothing is
// added. With a window, what queries of tokens before these would see is given back.
pando_status pando_attention_append(pando_attention* attention, int64_t layer, int64_t sequence, const float* k,
                                    size_t num_k, const float* v, size_t num_v);
pando_status pando_attention_get_num_tokens(const pando_attention* attention, int64_t layer, int64_t sequence,
                                            int64_t* num_tokens);

// queries and output: the sequences' [num_queries][num_heads][head_dim], one after the other. lse: their
// [num_queries][num_heads] natural log-sum-exps, sinks included; or none. Decode is for one or a few queries of each of
// several sequences, prefill for many of one; both give the same bits.
pando_status pando_attention_decode(pando_attention* attention, int64_t layer, const pando_sequence_queries* sequences,
                                    size_t num_sequences, const float* queries, size_t num_queries, float* output,
                                    size_t num_output, float* lse, size_t num_lse);
pando_status pando_attention_prefill(pando_attention* attention, int64_t layer, pando_sequence_queries sequence,
                                     const float* queries, size_t num_queries, float* output, size_t num_output,
                                     float* lse, size_t num_lse);

// Changes the options' strategy.
pando_status pando_attention_set_strategy(pando_attention* attention, const char* strategy);

// Moves slots so that each rank has its share by `rank_weights` (one per rank). No result changes. On failure to get
// memory all is as before, on all ranks.
pando_status pando_attention_rebalance(pando_attention* attention, const double* rank_weights, size_t num_rank_weights);

// Save writes the cache to files, one per rank: PREFIX.RANK-of-RANKS. Load reads such a set back, written by any number
// of ranks, in place of all sequences; sequences keep their ids. On failure the cache is as before, on all ranks.
pando_status pando_attention_save(pando_attention* attention, const char* prefix);
pando_status pando_attention_load(pando_attention* attention, const char* prefix);

// Slots [begin, end): what this rank owns.
pando_status pando_attention_get_slots(const pando_attention* attention, int64_t* begin, int64_t* end);
pando_status pando_attention_get_memory(const pando_attention* attention, pando_memory* memory);
pando_status pando_attention_get_last_step(pando_attention* attention, pando_step_report* report);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // PANDO_PANDO_H_
