// Generates text with a model, on one rank, on ranks as threads, or on the processes that mpirun started:
//
//   generate MODEL PROMPT [RANKS]
//   mpirun -n 2 generate MODEL PROMPT
//
// The text is the same on any number of ranks.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "pando/language_model.h"

// Leaves without waiting for other ranks, which MPI would do at a normal end.
[[noreturn]] static void Leave(const std::string& sentence) {
  std::fprintf(stderr, "generate: %s\n", sentence.c_str());
  std::_Exit(1);
}

static bool Print(std::string_view piece) {
  return std::fwrite(piece.data(), 1, piece.size(), stdout) == piece.size() && std::fflush(stdout) == 0;
}

int main(int argc, char** argv) {
  if (argc < 3) Leave("usage: generate MODEL PROMPT [RANKS]");
  const int64_t num_ranks = argc > 3 ? std::strtoll(argv[3], nullptr, 10) : 1;
  pando::Result<pando::LanguageModel> model =
      pando::LanguageModel::Load(argv[1], {.num_ranks = num_ranks, .on_stuck = Leave});
  if (!model.ok()) Leave(model.status().message());
  if (const pando::Status status = model->Serve(); !status.ok()) Leave(status.message());
  if (!model->is_front()) return 0;

  const pando::Result<pando::Generation> generation =
      model->Generate(argv[2], {.sampling = {.seed = 7}, .max_tokens = 48, .on_text = Print});
  if (!generation.ok()) Leave(generation.status().message());
  std::printf("\n");
  return 0;
}
