#include "src/engine/step_command.h"

namespace pando {

void BeginStep(Command& command, std::span<const SequenceTokens> batch, std::span<const size_t> wanted) {
  command.Begin(CommandKind::kStep);
  command.Add(static_cast<int64_t>(wanted.size()));
  for (const size_t token : wanted) command.Add(static_cast<int64_t>(token));
  command.Add(static_cast<int64_t>(batch.size()));
  for (const SequenceTokens& part : batch) {
    command.Add(part.sequence);
    command.Add(static_cast<int64_t>(part.tokens.size()));
  }
  for (const SequenceTokens& part : batch) {
    for (const int32_t token : part.tokens) command.Add(token);
  }
}

}  // namespace pando
