#include "src/ranks/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "pando/communicator.h"
#include "src/base/errors.h"
#include "src/ranks/communicator_state.h"

namespace pando {
namespace {

using ::testing::StartsWith;

TEST(AgreeTest, WhatWentWrongOnOneRankIsTheAnswerOfAll) {
  const Status status = RunInProcess(4, {}, [](Communicator& communicator) {
    const Status mine = communicator.rank() == 2 ? InvalidArgument("no such file") : Status();
    const Status answer = Agree(*StateOf(communicator).transport, mine);
    EXPECT_EQ(answer.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(answer.message(), communicator.rank() == 2 ? "no such file" : "rank 2: no such file");
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(AgreeOnOptionsTest, NamesTheRankThatHasOthers) {
  const Status status = RunInProcess(4, {}, [](Communicator& communicator) {
    Transport& transport = *StateOf(communicator).transport;
    EXPECT_TRUE(AgreeOnOptions(transport, "--batch 1").ok());
    const Status answer = AgreeOnOptions(transport, communicator.rank() == 3 ? "--batch 2" : "--batch 1");
    EXPECT_EQ(answer.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(answer.message(), StartsWith("rank 3 was started with --batch 2 and rank 0 with --batch 1"));
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(AgreeOnOptionsTest, SaysWhatDiffersAndNothingElse) {
  const auto answer = [](std::string first, std::string other) {
    return RunInProcess(2, {}, [&](Communicator& communicator) {
      return AgreeOnOptions(*StateOf(communicator).transport, communicator.rank() == 0 ? first : other);
    });
  };
  EXPECT_THAT(answer("a model -b 1 --heads 16 -c 3", "a model -b 1 --heads 1 -c 4").message(),
              StartsWith("rank 1 was started with --heads 1 -c 4 and rank 0 with --heads 16 -c 3:"));
  EXPECT_THAT(answer("a model -b 1", "b model -b 1").message(),
              StartsWith("rank 1 was started with b model and rank 0 with a model:"));
  EXPECT_THAT(answer("-b 1", "-b 1 --weights 1,2").message(),
              StartsWith("rank 1 was started with --weights 1,2 and rank 0 with -b 1:"));
}

TEST(AgreeOnOptionsTest, LongTextsLoseTheirEnd) {
  Communicator alone = Communicator::Alone();
  EXPECT_TRUE(AgreeOnOptions(*StateOf(alone).transport, std::string(10000, 'x')).ok());
}

}  // namespace
}  // namespace pando
