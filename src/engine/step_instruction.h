// The instruction of a step: what the front tells the workers to do with which tokens.
#ifndef PANDO_SRC_ENGINE_STEP_INSTRUCTION_H_
#define PANDO_SRC_ENGINE_STEP_INSTRUCTION_H_

#include <cstddef>
#include <span>

#include "src/engine/instruction.h"
#include "src/model/transformer.h"

namespace pando {

// `wanted`: of which of the batch's tokens, counted through, the logits are asked for.
void BeginStep(Instruction& instruction, std::span<const SequenceTokens> batch, std::span<const size_t> wanted);

}  // namespace pando

#endif  // PANDO_SRC_ENGINE_STEP_INSTRUCTION_H_
