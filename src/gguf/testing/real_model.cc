#include "src/gguf/testing/real_model.h"

#include <cstdlib>
#include <filesystem>

namespace pando::test_support {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::filesystem::path CacheFolder() {
  if (const std::string folder = Variable("PANDO_CACHE_DIR"); !folder.empty()) return folder;
  if (const std::string folder = Variable("XDG_CACHE_HOME"); !folder.empty())
    return std::filesystem::path(folder) / "pando";
  return std::filesystem::path(Variable("HOME")) / ".cache" / "pando";
}

}  // namespace

std::string RealModelPath() {
  if (std::string path = Variable("PANDO_TEST_MODEL"); !path.empty()) return path;
  const std::filesystem::path cached = CacheFolder() / "SmolLM2-135M-Instruct.Q4_1.gguf";
  return std::filesystem::exists(cached) ? cached.string() : "";
}

}  // namespace pando::test_support
