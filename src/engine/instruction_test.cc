#include "src/engine/instruction.h"

#include <gtest/gtest.h>

#include "pando/communicator.h"
#include "src/ranks/rank_access.h"

namespace pando {
namespace {

// Around what fits into one message, on any number of ranks; and the next instruction is not the last one's rest.
TEST(InstructionTest, EveryLengthArrives) {
  for (const int64_t num_ranks : {1, 2, 5}) {
    const Status status = RunInProcess(num_ranks, {}, [&](Communicator& communicator) -> Status {
      Instruction instruction;
      for (const int64_t num_words : {0, 1, 61, 62, 63, 64, 65, 1000, 3}) {
        if (communicator.rank() == 0) {
          instruction.Begin(InstructionKind::kStep);
          for (int64_t word = 0; word < num_words; ++word) instruction.Add(-7 * word + num_words);
        }
        if (Status done = instruction.Broadcast(TransportOf(communicator)); !done.ok()) return done;
        EXPECT_EQ(instruction.kind(), InstructionKind::kStep);
        InstructionReader reader(instruction);
        for (int64_t word = 0; word < num_words; ++word) EXPECT_EQ(reader.Next(), -7 * word + num_words);
      }
      return Status();
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(InstructionTest, TextsOfAnyBytesArrive) {
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) all_bytes.push_back(static_cast<char>(byte));
  const Status status = RunInProcess(3, {}, [&](Communicator& communicator) -> Status {
    Instruction instruction;
    if (communicator.rank() == 0) {
      instruction.Begin(InstructionKind::kSave);
      instruction.AddText("");
      instruction.AddText(all_bytes);
      instruction.Add(42);
    }
    if (Status done = instruction.Broadcast(TransportOf(communicator)); !done.ok()) return done;
    InstructionReader reader(instruction);
    EXPECT_EQ(reader.NextText(), "");
    EXPECT_EQ(reader.NextText(), all_bytes);
    EXPECT_EQ(reader.Next(), 42);
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace pando
