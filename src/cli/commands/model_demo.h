// The demo of a model: a question about a long document, answered on one rank and on several, with the same bits.
#ifndef PANDO_SRC_CLI_COMMANDS_MODEL_DEMO_H_
#define PANDO_SRC_CLI_COMMANDS_MODEL_DEMO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "pando/status.h"

namespace pando::cli {

struct ModelDemo {
  std::string model;
  std::string document;  // a file
  std::string question;
  std::vector<int64_t> ranks;  // numbers of them, one run each
};

// Prints the answers, the speeds and the fingerprints of the logits; fails if those differ.
Status RunModelDemo(const ModelDemo& demo);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_COMMANDS_MODEL_DEMO_H_
