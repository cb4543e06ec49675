// mpi_transport.h in a build without MPI.
#include "src/base/errors.h"
#include "src/transport/mpi/mpi_transport.h"

namespace pando {

bool BuiltWithMpi() { return false; }

Result<std::unique_ptr<Transport>> CreateMpiTransport(const MpiOptions& /*options*/) {
  return Failed(
      "this Pando was built without MPI: install OpenMPI (Debian: libopenmpi-dev) and build again, or run all ranks in "
      "one "
      "process");
}

}  // namespace pando
