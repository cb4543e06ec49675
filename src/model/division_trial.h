// DivisionTrial: which of a few divisions is the fastest, by using one after the other for some real steps. Every
// division gives the same bits, so trying one costs nothing but its time. A prediction knows the links and the ranks'
// speed; it does not know how long a message waits for a core that other ranks compute on.
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
  // Steps of each contender, one after the other: what it needs of memory can be given back before the next. The first
  // does not count: it gets that memory, and copies columns.
  static constexpr size_t kSteps = 6;

  explicit DivisionTrial(std::vector<StepDivision> contenders)
      : contenders_(std::move(contenders)), seconds_(contenders_.size()) {}

  const std::vector<StepDivision>& contenders() const { return contenders_; }
  bool is_over() const { return num_steps_ >= kSteps * contenders_.size(); }
  // For the next step, unless it is over.
  const StepDivision& next() const { return contenders_[num_steps_ / kSteps]; }
  // What that step took on this rank.
  void Add(double seconds);

  // [contender]
  std::vector<double> Medians() const;

 private:
  std::vector<StepDivision> contenders_;
  std::vector<std::vector<double>> seconds_;  // [contender][step that counts]
  size_t num_steps_ = 0;
};

}  // namespace pando

#endif  // PANDO_SRC_MODEL_DIVISION_TRIAL_H_
