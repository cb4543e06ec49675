// Generates text with a model, as generate.cc does, in C:
//
//   generate_in_c MODEL PROMPT [RANKS]
//   mpirun -n 2 generate_in_c MODEL PROMPT
#include <stdio.h>
#include <stdlib.h>

#include "pando/pando_model.h"

// Leaves without waiting for other ranks, which MPI would do at a normal end.
static void Leave(const char* sentence, void* user) {
  (void)user;
  fprintf(stderr, "generate_in_c: %s\n", sentence);
  _Exit(1);
}

static void Check(pando_status status) {
  if (status != PANDO_OK) Leave(pando_last_error(), NULL);
}

static int Print(const char* piece, size_t num_bytes, void* user) {
  (void)user;
  return fwrite(piece, 1, num_bytes, stdout) == num_bytes && fflush(stdout) == 0;
}

int main(int argc, char** argv) {
  pando_model_options options;
  pando_generation_options generation_options;
  pando_model* model = NULL;
  pando_generation* generation = NULL;
  int is_front = 0;
  if (argc < 3) Leave("usage: generate_in_c MODEL PROMPT [RANKS]", NULL);
  Check(pando_model_options_init(&options));
  Check(pando_generation_options_init(&generation_options));
  if (argc > 3) options.num_ranks = strtoll(argv[3], NULL, 10);
  options.on_stuck = Leave;
  Check(pando_model_load(argv[1], &options, &model));
  Check(pando_model_serve(model));
  Check(pando_model_is_front(model, &is_front));
  if (is_front) {
    generation_options.seed = 7;
    generation_options.max_tokens = 48;
    generation_options.on_text = Print;
    Check(pando_model_generate(model, argv[2], &generation_options, &generation));
    printf("\n");
  }
  pando_generation_destroy(generation);
  pando_model_destroy(model);
  return 0;
}
