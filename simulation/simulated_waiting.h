// How a simulated rank waits, put in front of mpi_transport.cc by the compiler (simulation/CMakeLists.txt). Looking
// whether messages have come, as the transport does, would look for ever: only who blocks lets the simulated clock go
// on. So the look blocks until all of them have; the transport waits for all in any case.
#ifndef PANDO_SIMULATION_SIMULATED_WAITING_H_
#define PANDO_SIMULATION_SIMULATED_WAITING_H_

#include <mpi.h>

namespace pando {

// As MPI_Testsome. Messages are taken in one after the other, as they come or, where there are very many, in the order
// of the requests, each for the time that the link between its ranks demands of the receiver (SimGrid charges that only
// for MPI_Recv).
int WaitInsteadOfTest(int count, MPI_Request* requests, int* num_finished, int* finished, MPI_Status* statuses);

}  // namespace pando

#define MPI_Testsome ::pando::WaitInsteadOfTest

#endif  // PANDO_SIMULATION_SIMULATED_WAITING_H_
