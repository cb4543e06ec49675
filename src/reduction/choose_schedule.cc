#include "src/reduction/choose_schedule.h"

#include "src/base/check.h"
#include "src/base/errors.h"
#include "src/reduction/collective_cost.h"

namespace pando {
namespace {

double PredictedSeconds(const ScheduleInfo& info, const CostModel& model, const MessageShape& shape) {
  if (info.has_plan) return PredictSeconds(MakePlans(info.schedule, model.order.nodes), model, shape);
  if (info.schedule == Schedule::kAllreduce) return EstimateForestAllreduceSeconds(model, shape);
  PANDO_CHECK(info.schedule == Schedule::kPaper);
  return EstimatePaperSeconds(model, shape);
}

}  // namespace

ScheduleChoice ChooseSchedule(const CostModel& model, const MessageShape& shape, bool has_allreduce) {
  ScheduleChoice choice = {};
  const ScheduleCandidate* best = nullptr;
  choice.candidates.reserve(Schedules().size());
  for (const ScheduleInfo& info : Schedules()) {
    const bool can_run = info.has_plan || (info.schedule == Schedule::kAllreduce && has_allreduce);
    choice.candidates.push_back({info.schedule, PredictedSeconds(info, model, shape), can_run && info.same_bits});
    const ScheduleCandidate& candidate = choice.candidates.back();
    if (!candidate.can_be_chosen) continue;
    if (best == nullptr || candidate.predicted_seconds < best->predicted_seconds) best = &candidate;
  }
  PANDO_CHECK(best != nullptr);
  choice.schedule = best->schedule;
  choice.predicted_seconds = best->predicted_seconds;
  return choice;
}

Result<std::optional<Schedule>> ParseScheduleOrAuto(std::string_view name) {
  if (name == "auto") return std::optional<Schedule>();
  const Result<Schedule> schedule = ParseSchedule(name);
  if (!schedule.ok()) {
    return InvalidArgument("unknown schedule '{}': it must be auto or one of {}", name, ScheduleNames());
  }
  return std::optional<Schedule>(*schedule);
}

}  // namespace pando
