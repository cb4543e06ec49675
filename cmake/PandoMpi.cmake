# PANDO_HAVE_MPI: whether the library is built with the MPI transport.
#
# OpenMPI is asked for by its own name where it is installed: with MPICH beside it, plain mpicxx is whichever the system's
# alternatives point to. -DMPI_CXX_COMPILER=mpicxx.mpich chooses another.
set(PANDO_WITH_MPI AUTO CACHE STRING "Build the MPI transport: ON, OFF, or AUTO (where MPI is found)")
set_property(CACHE PANDO_WITH_MPI PROPERTY STRINGS AUTO ON OFF)

set(PANDO_HAVE_MPI OFF)
if(PANDO_WITH_MPI)
  if(NOT MPI_CXX_COMPILER)
    find_program(MPI_CXX_COMPILER mpicxx.openmpi DOC "The MPI compiler wrapper")
  endif()
  # The launcher of the same MPI.
  if(NOT MPIEXEC_EXECUTABLE AND MPI_CXX_COMPILER MATCHES "mpicxx\\.([a-z]+)$")
    find_program(MPIEXEC_EXECUTABLE mpiexec.${CMAKE_MATCH_1} DOC "The MPI launcher")
  endif()
  set(MPI_CXX_SKIP_MPICXX ON)
  if(PANDO_WITH_MPI STREQUAL AUTO)
    find_package(MPI 3.1 QUIET COMPONENTS CXX)
  else()
    find_package(MPI 3.1 REQUIRED COMPONENTS CXX)
  endif()
  set(PANDO_HAVE_MPI ${MPI_CXX_FOUND})
endif()
if(PANDO_HAVE_MPI)
  message(STATUS "MPI transport: ${MPI_CXX_COMPILER} (MPI ${MPI_CXX_VERSION}), started by ${MPIEXEC_EXECUTABLE}")
else()
  message(STATUS "MPI transport: none (ranks are threads of one process); PANDO_WITH_MPI is ${PANDO_WITH_MPI}")
endif()
