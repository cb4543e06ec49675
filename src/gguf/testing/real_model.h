// The default model's file, for tests that want a real one: $PANDO_TEST_MODEL (scripts/test sets it), or else what
// scripts/fetch-model left in its cache folder.
//
//   const std::string model = RealModelPath();
//   if (model.empty()) GTEST_SKIP() << kNoRealModel;
#ifndef PANDO_SRC_GGUF_TESTING_REAL_MODEL_H_
#define PANDO_SRC_GGUF_TESTING_REAL_MODEL_H_

#include <string>

namespace pando::test_support {

inline constexpr const char* kNoRealModel =
    "the model is not here: run scripts/fetch-model, or set PANDO_TEST_MODEL to it";

// Empty if there is none. A path in $PANDO_TEST_MODEL is taken as it is, so that a wrong one fails and is not skipped.
std::string RealModelPath();

}  // namespace pando::test_support

#endif  // PANDO_SRC_GGUF_TESTING_REAL_MODEL_H_
