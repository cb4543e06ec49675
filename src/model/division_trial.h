// DivisionTrial: which of a few divisions is the fastest, by using each of them in turn for real steps. Every division
// gives the same bits, so trying one costs nothing but its time. A prediction knows the links and the ranks' speed; it
// does not know how long a message waits for a core that other ranks compute on.
//
//   DivisionTrial trial(contenders);
//   while (!trial.is_over()) { Run(trial.next()); trial.Add(seconds); }
//   trial.Medians()                                       // on this rank; the ranks must agree on what follows
#ifndef PANDO_SRC_MODEL_DIVISION_TRIAL_H_
#define PANDO_SRC_MODEL_DIVISION_TRIAL_H_

#include <cstddef>
#include <vector>

#include "src/reduction/step_division.h"

namespace pando {

class DivisionTrial {
 public:
  // Steps of each contender. The first does not count: it gets memory, and copies columns.
  static constexpr size_t kRounds = 6;

  explicit DivisionTrial(std::vector<StepDivision> contenders)
      : contenders_(std::move(contenders)), seconds_(contenders_.size()) {}

  const std::vector<StepDivision>& contenders() const { return contenders_; }
  bool is_over() const { return num_steps_ >= kRounds * contenders_.size(); }
  // For the next step. They take turns, so that whatever else the machine does meets all of them.
  const StepDivision& next() const { return contenders_[num_steps_ % contenders_.size()]; }
  // What that step took on this rank.
  void Add(double seconds);

  // [contender]
  std::vector<double> Medians() const;

 private:
  std::vector<StepDivision> contenders_;
  std::vector<std::vector<double>> seconds_;  // [contender][round that counts]
  size_t num_steps_ = 0;
};

}  // namespace pando

#endif  // PANDO_SRC_MODEL_DIVISION_TRIAL_H_
