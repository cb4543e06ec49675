// Platforms as data: the ones that are shipped (simulation/platforms/) and files like them.
//
//   Result<Platform> platform = FindPlatform("dgx-h100");            // a shipped one
//   Result<Platform> platform = FindPlatform("./my-cluster.json");   // a file
//
// docs/planning.md says what every key means. A file is read strictly: a key that is unknown, missing, of another type
// or out of range is an error that names it.
#ifndef PANDO_SRC_PLANNING_PLATFORM_FILE_H_
#define PANDO_SRC_PLANNING_PLATFORM_FILE_H_

#include <span>
#include <string_view>

#include "pando/status.h"
#include "src/planning/platform.h"

namespace pando {

// `what` names the source in messages: a path.
Result<Platform> ParsePlatform(std::string_view json, std::string_view what);

// A shipped platform by name, or a file: whatever has a '/' or ends in ".json". An unknown name lists the known ones.
Result<Platform> FindPlatform(std::string_view name_or_path);

struct ShippedPlatform {
  std::string_view name;
  std::string_view json;  // the file as it was written
};

std::span<const ShippedPlatform> ShippedPlatforms();

}  // namespace pando

#endif  // PANDO_SRC_PLANNING_PLATFORM_FILE_H_
