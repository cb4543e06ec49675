// What the MPI transport calls in simulation in place of MPI's own, put in front of mpi_transport.cc by the compiler
// (simulation/CMakeLists.txt).
#ifndef PANDO_SIMULATION_SIMULATED_MPI_H_
#define PANDO_SIMULATION_SIMULATED_MPI_H_

#include <mpi.h>

namespace pando {

// As MPI_Testsome, but blocks until all of them have come: looking whether they have, as the transport does, would look
// for ever, since only who blocks lets the simulated clock go on. The transport waits for all in any case. Messages are
// taken in one after the other, as they come or, where there are very many, in the order of the requests, each for the
// time that the link between its ranks demands of the receiver (SimGrid charges that only for MPI_Recv).
int WaitInsteadOfTest(int count, MPI_Request* requests, int* num_finished, int* finished, MPI_Status* statuses);

// As MPI_Op_create, but the operator only takes the time that the device would to merge its operands.
int CreateTimedOperator(MPI_User_function* function, int commute, MPI_Op* op);

}  // namespace pando

#define MPI_Testsome ::pando::WaitInsteadOfTest
#define MPI_Op_create ::pando::CreateTimedOperator

#endif  // PANDO_SIMULATION_SIMULATED_MPI_H_
