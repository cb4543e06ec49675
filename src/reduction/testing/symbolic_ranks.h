// Executes plans on symbols instead of bytes: what each rank holds is a range of ranks, a range of row parts and the
// set of finished parts. Any step that an executor could not carry out is a sentence.
#ifndef PANDO_SRC_REDUCTION_TESTING_SYMBOLIC_RANKS_H_
#define PANDO_SRC_REDUCTION_TESTING_SYMBOLIC_RANKS_H_

#include <string>
#include <vector>

#include "src/reduction/schedule.h"

namespace pando {

// The first thing wrong with the plans of all ranks, by position; empty where every rank ends with all rows finished.
std::string WhyPlansFail(const std::vector<Plan>& plans);

}  // namespace pando

#endif  // PANDO_SRC_REDUCTION_TESTING_SYMBOLIC_RANKS_H_
