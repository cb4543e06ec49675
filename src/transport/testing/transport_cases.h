// What every transport must do, as functions that each rank of a group runs at the same time. Checked with GoogleTest's
// EXPECT on each rank: unit tests run them on threads, tests/mpi/ in processes under mpirun.
#ifndef PANDO_SRC_TRANSPORT_TESTING_TRANSPORT_CASES_H_
#define PANDO_SRC_TRANSPORT_TESTING_TRANSPORT_CASES_H_

#include <span>

#include "src/transport/transport.h"

namespace pando::test_support {

struct TransportCase {
  const char* name;
  void (*run)(Transport& transport);
};

// Each leaves the group as it found it.
std::span<const TransportCase> TransportCases();

}  // namespace pando::test_support

#endif  // PANDO_SRC_TRANSPORT_TESTING_TRANSPORT_CASES_H_
