// Models in C: what language_model.h does in C++. The rules of pando.h hold: a call that fails says why in
// pando_last_error(), and structs begin with their size, which the init functions set.
//
//   pando_model_options options;
//   pando_model_options_init(&options);
//   pando_generation_options generation_options;
//   pando_generation_options_init(&generation_options);
//   pando_model* model = NULL;
//   pando_generation* generation = NULL;
//   if (pando_model_load("model.gguf", &options, &model) != PANDO_OK) puts(pando_last_error());
//   if (pando_model_generate(model, "Hello", &generation_options, &generation) == PANDO_OK)
//     puts(pando_generation_text(generation));
//   pando_generation_destroy(generation);
//   pando_model_destroy(model);
#ifndef PANDO_PANDO_MODEL_H_
#define PANDO_PANDO_MODEL_H_

#include "pando/pando.h"

#ifdef __cplusplus
extern "C" {
#endif

// The names are those of C: NOLINTBEGIN(readability-identifier-naming)

typedef struct pando_model pando_model;
typedef struct pando_generation pando_generation;

typedef struct pando_model_options {
  size_t struct_size;
  int64_t num_ranks;    // threads of this process; under mpirun its processes are the ranks: 1
  int64_t num_threads;  // of each rank; 0: the machine's cores, shared by the ranks on it
  int64_t timeout_ms;   // for each wait for another rank: 30000
  // As in pando_communicator_options.
  void (*on_stuck)(const char* sentence, void* user);
  void* user;
} pando_model_options;

pando_status pando_model_options_init_size(pando_model_options* options, size_t struct_size);
static inline pando_status pando_model_options_init(pando_model_options* options) {
  return pando_model_options_init_size(options, sizeof(*options));
}

// Why a generation ended.
enum {
  PANDO_END_OF_GENERATION = 0,  // the model picked a token that ends its text
  PANDO_END_LENGTH = 1,         // max_tokens were generated
  PANDO_END_CONTEXT = 2,        // the context is full
  PANDO_END_STOP_SEQUENCE = 3,  // the text reached one of the stop sequences
  PANDO_END_CANCELLED = 4       // on_text returned 0
};

typedef struct pando_generation_options {
  size_t struct_size;
  double temperature;  // 0: always the likeliest token
  int64_t top_k;       // 0: all
  double top_p;        // 1: all
  double min_p;        // 0: all
  double repeat_penalty;
  int64_t repeat_last_n;
  uint64_t seed;
  int64_t max_tokens;
  int64_t context;          // tokens of prompt and text; 0: what the model was trained for
  const char* const* stop;  // num_stops strings; the text ends before the first of them
  size_t num_stops;
  int32_t ignore_end;  // not 0: go on after a token that ends the text
  // May be NULL. Gets the text as it is made, in whole UTF-8 characters; if it returns 0, the generation is cancelled.
  // It runs on another thread while the call waits, and must not call the model.
  int (*on_text)(const char* piece, size_t num_bytes, void* user);
  void* user;  // for on_text, may be NULL
} pando_generation_options;

pando_status pando_generation_options_init_size(pando_generation_options* options, size_t struct_size);
static inline pando_status pando_generation_options_init(pando_generation_options* options) {
  return pando_generation_options_init_size(options, sizeof(*options));
}

// Any thread may call a model; calls run one after the other.
pando_status pando_model_load(const char* path, const pando_model_options* options, pando_model** model);
void pando_model_destroy(pando_model* model);  // ends its ranks; NULL: nothing

// 1 in the front, which makes all calls; 0 in other processes of mpirun, which call pando_model_serve.
pando_status pando_model_is_front(const pando_model* model, int* is_front);
// In a process that is not the front: works for the front until it ends. In the front: returns at once.
pando_status pando_model_serve(pando_model* model);

pando_status pando_model_generate(pando_model* model, const char* prompt, const pando_generation_options* options,
                                  pando_generation** generation);

// What came of it, until it is destroyed. NULL gives "", 0 tokens and PANDO_END_CANCELLED.
const char* pando_generation_text(const pando_generation* generation);
const int32_t* pando_generation_tokens(const pando_generation* generation, size_t* num_tokens);
int32_t pando_generation_end_reason(const pando_generation* generation);
void pando_generation_destroy(pando_generation* generation);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // PANDO_PANDO_MODEL_H_
