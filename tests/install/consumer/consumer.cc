// A program outside the source tree that uses the installed package: merges the states of two tokens and prints the
// attention of both.
#include <cstdio>
#include <vector>

#include "pando/attention_state.h"
#include "pando/status.h"

namespace {

constexpr size_t kHeadDim = 8;

// One query, one head, one token: its score and its value (the same in every dim).
class OneToken {
 public:
  OneToken(float score, float value) : floats_(pando::AttentionStateSpan::NumFloats(1, kHeadDim)) {
    pando::SetIdentity(state());
    state().max(0) = score;
    state().sum(0) = 1;
    for (size_t j = 0; j < kHeadDim; ++j) state().acc(0)[j] = value;
  }

  pando::AttentionStateSpan state() { return {floats_.data(), 1, kHeadDim}; }

 private:
  std::vector<float> floats_;
};

}  // namespace

int main() {
  const pando::Status status;
  OneToken a(0.0f, 1.0f);
  OneToken b(0.0f, 3.0f);
  pando::Merge(a.state(), b.state());
  std::vector<float> output(kHeadDim);
  pando::Finish(a.state(), output.data());
  std::printf("ok=%d attention=%g\n", status.ok() ? 1 : 0, static_cast<double>(output[kHeadDim - 1]));
  return 0;
}
