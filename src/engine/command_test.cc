#include "src/engine/command.h"

#include <gtest/gtest.h>

#include "pando/communicator.h"
#include "src/ranks/rank_access.h"

namespace pando {
namespace {

// Around what fits into one message, on any number of ranks; and the next command is not the last one's rest.
TEST(CommandTest, EveryLengthArrives) {
  for (const int64_t num_ranks : {1, 2, 5}) {
    const Status status = RunInProcess(num_ranks, {}, [&](Communicator& communicator) -> Status {
      Command command;
      for (const int64_t num_words : {0, 1, 61, 62, 63, 64, 65, 1000, 3}) {
        if (communicator.rank() == 0) {
          command.Begin(CommandKind::kStep);
          for (int64_t word = 0; word < num_words; ++word) command.Add(-7 * word + num_words);
        }
        if (Status done = command.Broadcast(TransportOf(communicator)); !done.ok()) return done;
        EXPECT_EQ(command.kind(), CommandKind::kStep);
        CommandReader reader(command);
        for (int64_t word = 0; word < num_words; ++word) EXPECT_EQ(reader.Next(), -7 * word + num_words);
      }
      return Status();
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(CommandTest, TextsOfAnyBytesArrive) {
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) all_bytes.push_back(static_cast<char>(byte));
  const Status status = RunInProcess(3, {}, [&](Communicator& communicator) -> Status {
    Command command;
    if (communicator.rank() == 0) {
      command.Begin(CommandKind::kSave);
      command.AddText("");
      command.AddText(all_bytes);
      command.Add(42);
    }
    if (Status done = command.Broadcast(TransportOf(communicator)); !done.ok()) return done;
    CommandReader reader(command);
    EXPECT_EQ(reader.NextText(), "");
    EXPECT_EQ(reader.NextText(), all_bytes);
    EXPECT_EQ(reader.Next(), 42);
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace pando
