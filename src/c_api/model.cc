// The models of pando_model.h.
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "pando/language_model.h"
#include "pando/pando_model.h"
#include "src/c_api/call.h"

struct pando_model {  // NOLINT(readability-identifier-naming)
  pando::LanguageModel model;
};

struct pando_generation {  // NOLINT(readability-identifier-naming)
  pando::Generation generation;
};

namespace pando::c_api {
namespace {

static_assert(static_cast<int>(EndReason::kEndOfGeneration) == PANDO_END_OF_GENERATION);
static_assert(static_cast<int>(EndReason::kLength) == PANDO_END_LENGTH);
static_assert(static_cast<int>(EndReason::kContext) == PANDO_END_CONTEXT);
static_assert(static_cast<int>(EndReason::kStopSequence) == PANDO_END_STOP_SEQUENCE);
static_assert(static_cast<int>(EndReason::kCancelled) == PANDO_END_CANCELLED);

pando_generation_options DefaultGenerationOptions() {
  const GenerationOptions defaults;
  const SamplerOptions& sampling = defaults.sampling;
  return {.struct_size = sizeof(pando_generation_options),
          .temperature = sampling.temperature,
          .top_k = sampling.top_k,
          .top_p = sampling.top_p,
          .min_p = sampling.min_p,
          .repeat_penalty = sampling.repeat_penalty,
          .repeat_last_n = sampling.repeat_last_n,
          .seed = sampling.seed,
          .max_tokens = defaults.max_tokens,
          .context = 0,
          .stop = nullptr,
          .num_stops = 0,
          .ignore_end = 0,
          .on_text = nullptr,
          .user = nullptr};
}

Result<GenerationOptions> ConvertGeneration(const pando_generation_options& given) {
  PANDO_RETURN_IF_ERROR(CheckSize("generation options", given, "call pando_generation_options_init first"));
  PANDO_RETURN_IF_ERROR(CheckPointers("pando_model_generate", {{given.stop, "stop", given.num_stops}}));
  GenerationOptions options{.sampling = {.temperature = given.temperature,
                                         .top_k = given.top_k,
                                         .top_p = given.top_p,
                                         .min_p = given.min_p,
                                         .repeat_penalty = given.repeat_penalty,
                                         .repeat_last_n = given.repeat_last_n,
                                         .seed = given.seed},
                            .max_tokens = given.max_tokens,
                            .ignore_end = given.ignore_end != 0};
  if (given.context != 0) options.context = given.context;
  for (size_t i = 0; i < given.num_stops; ++i) {
    PANDO_RETURN_IF_ERROR(CheckPointers("pando_model_generate", {{given.stop[i], "a stop sequence"}}));
    options.stop.emplace_back(given.stop[i]);
  }
  if (given.on_text != nullptr) {
    options.on_text = [on_text = given.on_text, user = given.user](std::string_view piece) {
      return on_text(piece.data(), piece.size(), user) != 0;
    };
  }
  return options;
}

Status LoadModel(const char* path, const pando_model_options& given, pando_model** place) {
  PANDO_RETURN_IF_ERROR(CheckSize("model options", given, "call pando_model_options_init first"));
  LanguageModelOptions options{.num_ranks = given.num_ranks,
                               .num_threads = given.num_threads,
                               .timeout = std::chrono::milliseconds(given.timeout_ms)};
  if (given.on_stuck != nullptr) {
    options.on_stuck = [on_stuck = given.on_stuck, user = given.user](const std::string& sentence) {
      on_stuck(sentence.c_str(), user);
    };
  }
  PANDO_ASSIGN_OR_RETURN(LanguageModel model, LanguageModel::Load(path, options));
  *place = new pando_model{std::move(model)};
  return Status();
}

Status GenerateText(LanguageModel& model, const char* prompt, const pando_generation_options& given,
                    pando_generation** place) {
  PANDO_ASSIGN_OR_RETURN(const GenerationOptions options, ConvertGeneration(given));
  PANDO_ASSIGN_OR_RETURN(Generation generation, model.Generate(prompt, options));
  *place = new pando_generation{std::move(generation)};
  return Status();
}

}  // namespace
}  // namespace pando::c_api

pando_status pando_model_options_init_size(pando_model_options* options, size_t struct_size) {
  return pando::c_api::RunCall(__func__, {{options, "options"}}, [&] {
    const pando::LanguageModelOptions defaults;
    return pando::c_api::InitStruct("pando_model_options", options, struct_size,
                                    pando_model_options{.struct_size = sizeof(pando_model_options),
                                                        .num_ranks = defaults.num_ranks,
                                                        .num_threads = defaults.num_threads,
                                                        .timeout_ms = defaults.timeout.count(),
                                                        .on_stuck = nullptr,
                                                        .user = nullptr});
  });
}

pando_status pando_generation_options_init_size(pando_generation_options* options, size_t struct_size) {
  return pando::c_api::RunCall(__func__, {{options, "options"}}, [&] {
    return pando::c_api::InitStruct("pando_generation_options", options, struct_size,
                                    pando::c_api::DefaultGenerationOptions());
  });
}

pando_status pando_model_load(const char* path, const pando_model_options* options, pando_model** model) {
  return pando::c_api::RunCall(__func__, {{path, "path"}, {options, "options"}, {model, "model"}},
                               [&] { return pando::c_api::LoadModel(path, *options, model); });
}

void pando_model_destroy(pando_model* model) { delete model; }

pando_status pando_model_is_front(const pando_model* model, int* is_front) {
  return pando::c_api::RunCall(__func__, {{model, "model"}, {is_front, "is_front"}}, [&] {
    *is_front = model->model.is_front() ? 1 : 0;
    return pando::Status();
  });
}

pando_status pando_model_serve(pando_model* model) {
  return pando::c_api::RunCall(__func__, {{model, "model"}}, [&] { return model->model.Serve(); });
}

pando_status pando_model_generate(pando_model* model, const char* prompt, const pando_generation_options* options,
                                  pando_generation** generation) {
  return pando::c_api::RunCall(__func__,
                               {{model, "model"}, {prompt, "prompt"}, {options, "options"}, {generation, "generation"}},
                               [&] { return pando::c_api::GenerateText(model->model, prompt, *options, generation); });
}

const char* pando_generation_text(const pando_generation* generation) {
  return generation == nullptr ? "" : generation->generation.text.c_str();
}

const int32_t* pando_generation_tokens(const pando_generation* generation, size_t* num_tokens) {
  if (num_tokens != nullptr) *num_tokens = generation == nullptr ? 0 : generation->generation.tokens.size();
  return generation == nullptr ? nullptr : generation->generation.tokens.data();
}

int32_t pando_generation_end_reason(const pando_generation* generation) {
  return generation == nullptr ? PANDO_END_CANCELLED : static_cast<int32_t>(generation->generation.reason);
}

void pando_generation_destroy(pando_generation* generation) { delete generation; }
