#include "src/cli/default_model.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "src/base/errors.h"
#include "src/cli/exit.h"

namespace pando::cli {
namespace {

// The same as in scripts/fetch-model.
constexpr const char* kFetchedModel = "SmolLM2-135M-Instruct.Q4_1.gguf";

// Empty if it is not set.
std::string EnvironmentValue(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets variables
  return value == nullptr ? "" : value;
}

Result<std::string> Take(const std::string& path, const std::string& reason) {
  if (IsFirstProcess()) fmt::print(stderr, "pando: the model is {} ({})\n", path, reason);
  return path;
}

}  // namespace

std::string FetchedModelPath() {
  std::string folder = EnvironmentValue("PANDO_CACHE_DIR");
  if (folder.empty()) {
    const std::string cache = EnvironmentValue("XDG_CACHE_HOME");
    folder = (cache.empty() ? EnvironmentValue("HOME") + "/.cache" : cache) + "/pando";
  }
  return folder + "/" + kFetchedModel;
}

Result<std::string> ChooseModel(const std::string& given) {
  if (!given.empty()) return given;
  if (const std::string path = EnvironmentValue("PANDO_MODEL"); !path.empty()) return Take(path, "from $PANDO_MODEL");
  const std::string fetched = FetchedModelPath();
  if (access(fetched.c_str(), R_OK) == 0) return Take(fetched, "the default");
  return InvalidArgument(
      "no model is given: name a GGUF file with -m or in $PANDO_MODEL, or run scripts/fetch-model, which puts the "
      "default one in {}",
      fetched);
}

}  // namespace pando::cli
