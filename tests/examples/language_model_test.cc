// The public model API, through the installed headers alone, with a tiny model. The first tests are the examples that
// the headers open with.
#include "pando/language_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr const char* kModel = PANDO_PARITY_MODELS "/llama-f32.gguf";

pando::LanguageModel Load(int64_t num_ranks) {
  pando::Result<pando::LanguageModel> model =
      pando::LanguageModel::Load(kModel, {.num_ranks = num_ranks, .num_threads = 1});
  EXPECT_TRUE(model.ok()) << model.status().message();
  return std::move(model).value();
}

TEST(HeaderExamples, LanguageModel) {
  pando::Result<pando::LanguageModel> model = pando::LanguageModel::Load(kModel, {.num_ranks = 4});
  ASSERT_TRUE(model.ok()) << model.status().message();
  pando::Result<pando::Generation> generation = model->Generate("The capital of France is", {.max_tokens = 16});
  ASSERT_TRUE(generation.ok()) << generation.status().message();
  if (generation.ok()) std::puts(generation->text.c_str());
  EXPECT_TRUE(model->is_front());
  EXPECT_TRUE(model->Serve().ok());
}

TEST(HeaderExamples, Generation) {
  pando::GenerationOptions options;
  options.max_tokens = 64;
  options.sampling.temperature = 0;
  options.stop = {"\n\n"};
  options.on_text = [](std::string_view piece) { return std::fwrite(piece.data(), 1, piece.size(), stdout) > 0; };
  pando::Cancellation cancellation = options.cancellation;
  cancellation.Cancel();
  pando::LanguageModel model = Load(1);
  EXPECT_EQ(model.Generate("x", options)->reason, pando::EndReason::kCancelled);
}

TEST(HeaderExamples, ChatMessage) {
  const pando::ChatMessage message{"user", "Why is the sky blue?"};
  EXPECT_EQ(message.role, "user");
}

TEST(LanguageModelTest, KnowsItsFileAndItsTokens) {
  const pando::LanguageModel model = Load(1);
  EXPECT_EQ(model.facts().architecture, "llama");
  EXPECT_GT(model.facts().vocabulary_size, 256);
  EXPECT_GT(model.facts().trained_context, 0);
  const std::string text = "Zürich, 東京";
  const std::vector<int32_t> tokens = model.Encode(text).value();
  EXPECT_EQ(model.Decode(tokens).value(), text);
  pando::TextStream stream = model.StreamText();
  std::string streamed;
  for (const int32_t token : tokens) streamed += stream.Push(token);
  EXPECT_EQ(streamed + stream.Finish(), text);
}

TEST(LanguageModelTest, SeveralAtOnceAreWhatEachIsAloneOnAnyRanks) {
  pando::LanguageModel one = Load(1);
  pando::LanguageModel four = Load(4);
  std::vector<std::string> prompts;
  std::vector<pando::GenerationOptions> options;
  for (int i = 0; i < 5; ++i) {
    prompts.push_back("Prompt number " + std::to_string(i));
    options.push_back({.sampling = {.seed = static_cast<uint64_t>(i)}, .max_tokens = 5 + i, .ignore_end = true});
  }
  const std::vector<pando::Generation> together = four.GenerateAll(prompts, options).value();
  for (size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(together[i].tokens, one.Generate(prompts[i], options[i])->tokens);
    EXPECT_EQ(together[i].reason, pando::EndReason::kLength);
  }
  EXPECT_FALSE(four.GenerateAll(prompts, {}).ok());
}

TEST(LanguageModelTest, AnotherThreadCancels) {
  pando::LanguageModel model = Load(2);
  pando::GenerationOptions options{.max_tokens = 1'000'000'000, .context = 100'000, .ignore_end = true};
  const pando::Cancellation cancellation = options.cancellation;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    cancellation.Cancel();
  });
  const pando::Result<pando::Generation> generation = model.Generate("On and on", options);
  other.join();
  ASSERT_TRUE(generation.ok()) << generation.status().message();
  EXPECT_EQ(generation->reason, pando::EndReason::kCancelled);
}

TEST(LanguageModelTest, LogitsOfAnyPosition) {
  pando::LanguageModel model = Load(2);
  const std::vector<int32_t> tokens = model.Encode("one two three four five").value();
  const std::vector<int64_t> positions{1, static_cast<int64_t>(tokens.size()) - 1};
  const std::vector<float> logits = model.Logits(tokens, positions).value();
  const auto vocabulary = static_cast<size_t>(model.facts().vocabulary_size);
  ASSERT_EQ(logits.size(), 2 * vocabulary);
  // Greedy generation picks the largest of the last ones.
  const auto best = std::max_element(logits.begin() + static_cast<ptrdiff_t>(vocabulary), logits.end());
  const pando::Generation next =
      model.Generate("one two three four five", {.sampling = {.temperature = 0}, .max_tokens = 1, .ignore_end = true})
          .value();
  EXPECT_EQ(next.tokens.front(), best - logits.begin() - static_cast<ptrdiff_t>(vocabulary));
  EXPECT_EQ(model.Logits({tokens.data(), 2}, {positions.data(), 1}).value(),
            std::vector<float>(logits.begin(), logits.begin() + static_cast<ptrdiff_t>(vocabulary)));
  const std::vector<int64_t> beyond{100};
  EXPECT_EQ(model.Logits(tokens, beyond).status().code(), pando::StatusCode::kInvalidArgument);
}

TEST(LanguageModelTest, AConversationKeepsItsCache) {
  pando::LanguageModel model = Load(2);
  pando::Result<pando::Conversation> chat =
      model.StartConversation({.sampling = {.temperature = 0}, .max_answer_tokens = 4, .template_name = "chatml"});
  ASSERT_TRUE(chat.ok()) << chat.status().message();
  std::string streamed;
  const pando::Result<pando::Generation> first = chat->Say("Hello, how are you today?", [&](std::string_view piece) {
    streamed += piece;
    return true;
  });
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(streamed, first->text);
  const pando::Result<pando::Generation> second = chat->Say("Hm?");
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_LT(second->prompt_tokens, first->prompt_tokens) << "only what is new";
  EXPECT_EQ(chat->messages().size(), 4u);
}

TEST(LanguageModelTest, SaysWhatIsWrong) {
  EXPECT_FALSE(pando::LanguageModel::Load("/no/such.gguf").ok());
  EXPECT_FALSE(pando::LanguageModel::Load(kModel, {.num_ranks = 0}).ok());
  EXPECT_FALSE(pando::LanguageModel::Load(kModel, {.strategy = "star"}).ok());
  pando::LanguageModel model = Load(1);
  EXPECT_FALSE(model.Generate("x", {.sampling = {.temperature = -1}}).ok());
  EXPECT_FALSE(model.StartConversation({.template_name = "none"}).ok());
  EXPECT_TRUE(model.Generate("x", {.max_tokens = 1}).ok());
}

}  // namespace
