// Instruction: what the front tells the workers, as words in a message. Most instructions, a decode step among them,
// are one broadcast of one small size; longer ones are followed by their rest.
#ifndef PANDO_SRC_ENGINE_INSTRUCTION_H_
#define PANDO_SRC_ENGINE_INSTRUCTION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pando/status.h"
#include "src/transport/transport.h"

namespace pando {

enum class InstructionKind : int64_t {
  kStop,
  kKeepAlive,
  kAddSequence,
  kForkSequence,
  kRemoveSequence,
  kReserve,
  kStep,
  kLogits,
  kSetStrategy,
  kSave,
  kLoad,
  kFigures,
};

class Instruction {
 public:
  void Begin(InstructionKind kind);
  void Add(int64_t word) { words_.push_back(word); }
  void AddText(std::string_view text);

  InstructionKind kind() const { return static_cast<InstructionKind>(words_.front()); }

  // From rank 0 to all others, whose instruction it becomes.
  Status Broadcast(Transport& transport);

 private:
  friend class InstructionReader;
  // The kind, then what was added.
  std::vector<int64_t> words_;
  // The number of words, then the first of them: what is sent at once.
  std::vector<int64_t> message_;
};

// Reads in the order of adding. What the front wrote is read by the same program: a word too few is our own bug.
class InstructionReader {
 public:
  explicit InstructionReader(const Instruction& instruction) : instruction_(instruction) {}
  int64_t Next();
  std::string NextText();

 private:
  const Instruction& instruction_;
  size_t next_ = 1;
};

}  // namespace pando

#endif  // PANDO_SRC_ENGINE_INSTRUCTION_H_
