#include "src/engine/step_instruction.h"

namespace pando {

void BeginStep(Instruction& instruction, std::span<const SequenceTokens> batch, std::span<const size_t> wanted) {
  instruction.Begin(InstructionKind::kStep);
  instruction.Add(static_cast<int64_t>(wanted.size()));
  for (const size_t token : wanted) instruction.Add(static_cast<int64_t>(token));
  instruction.Add(static_cast<int64_t>(batch.size()));
  for (const SequenceTokens& part : batch) {
    instruction.Add(part.sequence);
    instruction.Add(static_cast<int64_t>(part.tokens.size()));
  }
  for (const SequenceTokens& part : batch) {
    for (const int32_t token : part.tokens) instruction.Add(token);
  }
}

}  // namespace pando
