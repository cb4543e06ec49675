#include "src/attention/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "pando/communicator.h"
#include "src/attention/communicator_state.h"
#include "src/base/errors.h"

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

TEST(AgreeOnOptionsTest, LongTextsLoseTheirEnd) {
  Communicator alone = Communicator::Alone();
  EXPECT_TRUE(AgreeOnOptions(*StateOf(alone).transport, std::string(10000, 'x')).ok());
}

}  // namespace
}  // namespace pando
