#include "src/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

namespace pando {
namespace {

TEST(TokenizerTest, RefusesAnUnknownModel) { EXPECT_FALSE(Tokenizer::Create({.model = "bert", .tokens = {"a"}}).ok()); }

}  // namespace
}  // namespace pando
