#include "src/planning/simulation_job.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "src/base/errors.h"
#include "src/planning/platform_file.h"

namespace pando {
namespace {

using Json = nlohmann::ordered_json;

// A platform file's text, without what a person would want to know of it.
Json LinkToJson(const LinkModel& link) {
  return {{"latency_seconds", link.latency_seconds},
          {"bytes_per_second", link.bytes_per_second},
          {"send_overhead_seconds", link.send_overhead_seconds},
          {"receive_overhead_seconds", link.receive_overhead_seconds},
          {"source", "given"}};
}

Json PlatformToJson(const Platform& platform) {
  Json json = {{"name", platform.name},
               {"description", platform.description},
               {"max_nodes", platform.max_nodes},
               {"ranks_per_node", platform.ranks_per_node},
               {"ports_per_node", platform.ports_per_node},
               {"source", "given"},
               {"device",
                {{"memory_bytes", platform.device.memory_bytes},
                 {"memory_bytes_per_second", platform.device.memory_bytes_per_second},
                 {"flops_per_second", platform.device.flops_per_second},
                 {"launch_overhead_seconds", platform.device.launch_overhead_seconds},
                 {"source", "given"}}},
               {"within_node", LinkToJson(platform.within_node)}};
  if (platform.max_nodes > 1) json["between_nodes"] = LinkToJson(platform.between_nodes);
  return json;
}

DownDivision DownDivisionOf(std::string_view name) {
  for (const DownDivision down : {DownDivision::kColumnsInOneHop, DownDivision::kColumnsInTwoHops}) {
    if (NameOf(down) == name) return down;
  }
  return DownDivision::kRows;
}

// Both programs are of one build: what does not fit is a mistake of theirs, not of a user's.
template <typename T, typename Read>
Result<T> Parse(std::string_view json, std::string_view what, const Read& read) {
  try {
    return read(Json::parse(json));
  } catch (const Json::exception& error) {
    return Failed("{} is not as expected ({}): are pando and pando-simulator of the same build?", what, error.what());
  }
}

}  // namespace

std::string ToJson(const SimulationJob& job) {
  Json json = {{"platform", PlatformToJson(job.platform)},
               {"num_ranks", job.num_ranks},
               {"num_heads", job.num_heads},
               {"num_kv_heads", job.num_kv_heads},
               {"head_dim", job.head_dim},
               {"kv_type", KvTypeName(job.kv_type)},
               {"context", job.context},
               {"batch", job.batch},
               {"num_slots", job.num_slots},
               {"strategy", job.strategy},
               {"ping_pong_bytes", job.ping_pong_bytes}};
  if (job.layers) {
    json["layers"] = {{"num_layers", job.layers->num_layers},
                      {"hidden_size", job.layers->hidden_size},
                      {"ffn_size", job.layers->ffn_size},
                      {"vocab_size", job.layers->vocab_size},
                      {"weight_type", job.layers->weight_type},
                      {"tokens_per_sequence", job.layers->tokens_per_sequence},
                      {"num_groups", job.layers->division.num_groups},
                      {"divides_tokens", job.layers->division.divides_tokens},
                      {"down", NameOf(job.layers->division.down)}};
  }
  return json.dump();
}

Result<SimulationJob> ParseSimulationJob(std::string_view text) {
  return Parse<SimulationJob>(text, "the job of a simulation", [](const Json& json) -> Result<SimulationJob> {
    Result<Platform> platform = ParsePlatform(json.at("platform").dump(), "the job's platform");
    if (!platform.ok()) return platform.status();
    const Result<KvType> kv_type = ParseKvType(json.at("kv_type").get<std::string>());
    if (!kv_type.ok()) return kv_type.status();
    SimulationJob job{.platform = std::move(platform).value(),
                      .num_ranks = json.at("num_ranks"),
                      .num_heads = json.at("num_heads"),
                      .num_kv_heads = json.at("num_kv_heads"),
                      .head_dim = json.at("head_dim"),
                      .kv_type = *kv_type,
                      .context = json.at("context"),
                      .batch = json.at("batch"),
                      .num_slots = json.at("num_slots"),
                      .strategy = json.at("strategy"),
                      .ping_pong_bytes = json.at("ping_pong_bytes")};
    if (json.contains("layers")) {
      const Json& layers = json.at("layers");
      job.layers = SimulatedLayers{.num_layers = layers.at("num_layers"),
                                   .hidden_size = layers.at("hidden_size"),
                                   .ffn_size = layers.at("ffn_size"),
                                   .vocab_size = layers.at("vocab_size"),
                                   .weight_type = layers.at("weight_type"),
                                   .tokens_per_sequence = layers.at("tokens_per_sequence"),
                                   .division = {.num_groups = layers.at("num_groups"),
                                                .divides_tokens = layers.at("divides_tokens"),
                                                .down = DownDivisionOf(layers.at("down").get<std::string>())}};
    }
    return job;
  });
}

std::string ToJson(const SimulationResult& result) {
  return Json{{"schedule", result.schedule},
              {"step_seconds", result.step_seconds},
              {"weight_seconds", result.weight_seconds},
              {"kv_seconds", result.kv_seconds},
              {"merge_seconds", result.merge_seconds},
              {"gather_seconds", result.gather_seconds},
              {"messages_per_rank", result.messages_per_rank},
              {"bytes_per_rank", result.bytes_per_rank},
              {"mpi_collectives", result.mpi_collectives},
              {"peak_kv_bytes", result.peak_kv_bytes},
              {"ping_pong_seconds", result.ping_pong_seconds}}
      .dump();
}

Result<SimulationResult> ParseSimulationResult(std::string_view text) {
  return Parse<SimulationResult>(text, "the result of a simulation", [](const Json& json) -> Result<SimulationResult> {
    return SimulationResult{.schedule = json.at("schedule"),
                            .step_seconds = json.at("step_seconds"),
                            .weight_seconds = json.at("weight_seconds"),
                            .kv_seconds = json.at("kv_seconds"),
                            .merge_seconds = json.at("merge_seconds"),
                            .gather_seconds = json.at("gather_seconds"),
                            .messages_per_rank = json.at("messages_per_rank"),
                            .bytes_per_rank = json.at("bytes_per_rank"),
                            .mpi_collectives = json.at("mpi_collectives"),
                            .peak_kv_bytes = json.at("peak_kv_bytes"),
                            .ping_pong_seconds = json.at("ping_pong_seconds")};
  });
}

}  // namespace pando
