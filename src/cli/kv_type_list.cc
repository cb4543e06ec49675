#include "src/cli/kv_type_list.h"

#include "src/base/errors.h"
#include "src/cli/size_list.h"

namespace pando::cli {

Result<std::vector<KvType>> ParseKvTypeList(std::string_view option, std::string_view text) {
  std::vector<KvType> types;
  for (const std::string_view name : SplitAtCommas(text)) {
    const Result<KvType> type = ParseKvType(name);
    if (!type.ok()) return InvalidArgument("{}: {}", option, type.status().message());
    types.push_back(*type);
  }
  return types;
}

}  // namespace pando::cli
