#include "src/engine/decode_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>

#include "src/base/errors.h"
#include "src/engine/generate.h"
#include "src/engine/testing/tiny_engine.h"
#include "src/model/testing/tiny_model.h"
#include "src/tokenizer/testing/small_vocabularies.h"

namespace pando {
namespace {

using test_support::MakeTinyModel;
using test_support::RandomPrompt;
using test_support::SmallSteps;
using test_support::TinyModel;
using ::testing::HasSubstr;

// A tokenizer with a token for each byte, and a model of its vocabulary.
struct ByteModel {
  Tokenizer tokenizer = Tokenizer::Create(test_support::ByteLevelData({})).value();
  TinyModel tiny = MakeTinyModel({.vocabulary = static_cast<uint64_t>(tokenizer.vocabulary_size())});

  Status Run(int64_t num_ranks, const std::function<Status(Engine&)>& front) const {
    const std::shared_ptr<const Model> model = tiny.Load().value();
    return RunInProcess(num_ranks, {}, [&](Communicator& communicator) {
      return Engine::Run(communicator, model, SmallSteps(), front);
    });
  }

  Result<std::vector<GenerationResult>> Generate(int64_t num_ranks,
                                                 const std::vector<GenerationRequest>& requests) const {
    std::vector<GenerationResult> results;
    PANDO_RETURN_IF_ERROR(Run(num_ranks, [&](Engine& engine) -> Status {
      PANDO_ASSIGN_OR_RETURN(results, pando::Generate(engine, tokenizer, requests));
      EXPECT_EQ(engine.NumTokens(0), 0) << "the sequences are gone";
      return Status();
    }));
    return results;
  }
};

GenerationRequest Request(size_t prompt_tokens, uint64_t seed, int64_t max_tokens) {
  return {.prompt = RandomPrompt(prompt_tokens, 256, seed),
          .options = {.sampling = {.seed = seed}, .max_tokens = max_tokens, .context = 1000, .ignore_end = true},
          .with_fingerprint = true};
}

TEST(DecodeLoopTest, ManyAtOnceAreWhatEachIsAlone) {
  const ByteModel model;
  std::vector<GenerationRequest> requests;
  for (uint64_t i = 0; i < 40; ++i) requests.push_back(Request(3 + i % 5, i + 1, static_cast<int64_t>(2 + i % 7)));
  const Result<std::vector<GenerationResult>> together = model.Generate(2, requests);
  ASSERT_TRUE(together.ok()) << together.status().message();
  for (size_t i = 0; i < requests.size(); i += 7) {
    const GenerationResult alone = model.Generate(1, {requests[i]}).value().front();
    EXPECT_EQ((*together)[i].generation.tokens, alone.generation.tokens);
    EXPECT_EQ((*together)[i].generation.text, alone.generation.text);
    EXPECT_EQ((*together)[i].fingerprint, alone.fingerprint);
    EXPECT_EQ(alone.generation.reason, EndReason::kLength);
  }
}

TEST(DecodeLoopTest, EndsBeforeAStopSequence) {
  const ByteModel model;
  GenerationRequest request = Request(5, 3, 40);
  const std::string whole = model.Generate(1, {request}).value().front().generation.text;
  ASSERT_GE(whole.size(), 20u);
  const std::string stop = whole.substr(10, 3);
  std::string streamed;
  request.options.stop = {"not in it", stop};
  request.options.on_text = [&](std::string_view piece) {
    streamed += piece;
    return true;
  };
  const Generation stopped = model.Generate(1, {request}).value().front().generation;
  EXPECT_EQ(stopped.reason, EndReason::kStopSequence);
  EXPECT_EQ(stopped.text, whole.substr(0, whole.find(stop)));
  EXPECT_EQ(streamed, stopped.text);
}

TEST(DecodeLoopTest, EndsWhereTheContextIsFull) {
  const ByteModel model;
  GenerationRequest request = Request(5, 3, 40);
  request.options.context = 8;
  const GenerationResult result = model.Generate(1, {request}).value().front();
  EXPECT_EQ(result.generation.reason, EndReason::kContext);
  EXPECT_EQ(result.generation.tokens.size(), 4u) << "the last one is not computed";
  request.options.context = 5;
  EXPECT_THAT(model.Generate(1, {request}).status().message(), HasSubstr("room for 5"));
}

TEST(DecodeLoopTest, CanBeCancelled) {
  const ByteModel model;
  GenerationRequest request = Request(5, 3, 40);
  size_t num_pieces = 0;
  request.options.on_text = [&](std::string_view) {
    if (++num_pieces == 3) request.options.cancellation.Cancel();
    return true;
  };
  const Generation cancelled = model.Generate(2, {request, Request(5, 4, 20)}).value().front().generation;
  EXPECT_EQ(cancelled.reason, EndReason::kCancelled);
  EXPECT_LT(cancelled.tokens.size(), 40u);
  // While the prompt is read.
  const Generation none = model.Generate(1, {request}).value().front().generation;
  EXPECT_EQ(none.reason, EndReason::kCancelled);
  EXPECT_EQ(none.text, "");
}

// Damaged weights gave token 0 for ever.
TEST(DecodeLoopTest, LogitsThatAreNotFiniteAreAFailure) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    ByteModel model;
    std::memcpy(model.tiny.tensors.at("output.weight").data.data(), &bad, sizeof(bad));
    const Status status = model.Generate(2, {Request(5, 3, 4)}).status();
    EXPECT_EQ(status.code(), StatusCode::kFailed);
    EXPECT_THAT(status.message(), HasSubstr("not a finite number"));
  }
}

TEST(DecodeLoopTest, WrongRequestsAreRefused) {
  const ByteModel model;
  GenerationRequest empty_stop = Request(5, 3, 4);
  empty_stop.options.stop = {""};
  GenerationRequest negative = Request(5, 3, -1);
  GenerationRequest no_prompt = Request(0, 3, 4);
  for (const GenerationRequest& wrong : {empty_stop, negative, no_prompt}) {
    EXPECT_EQ(model.Generate(1, {wrong}).status().code(), StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace pando
