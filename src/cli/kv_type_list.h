// KV types as people type them on a command line: "f16,q8_0".
#ifndef PANDO_SRC_CLI_KV_TYPE_LIST_H_
#define PANDO_SRC_CLI_KV_TYPE_LIST_H_

#include <string_view>
#include <vector>

#include "pando/kv_type.h"
#include "pando/status.h"

namespace pando::cli {

// `option` ("--kv-type") is only for the message.
Result<std::vector<KvType>> ParseKvTypeList(std::string_view option, std::string_view text);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_KV_TYPE_LIST_H_
