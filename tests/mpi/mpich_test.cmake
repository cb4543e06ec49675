# Builds the MPI transport a second time, with MPICH, and runs its tests. Says "skipped:" and why where MPICH is not there.
#
#   cmake -DSOURCE_DIR=... -DWORK_DIR=... -DCXX=... -DPYTHON=... -P mpich_test.cmake

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGV}: exit code ${code}\n${output}")
  endif()
endfunction()

find_program(mpicxx mpicxx.mpich)
find_program(mpiexec mpiexec.mpich)
if(NOT mpicxx OR NOT mpiexec)
  message("skipped: there is no mpicxx.mpich or no mpiexec.mpich here (Debian: mpich, libmpich-dev)")
  return()
endif()

run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE_DIR} -B ${WORK_DIR} -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON
    -DCMAKE_CXX_COMPILER=${CXX} -DPANDO_WERROR=ON -DPANDO_BUILD_PROGRAM=OFF -DPANDO_BUILD_EXAMPLES=OFF
    -DPANDO_WITH_MPI=ON -DMPI_CXX_COMPILER=${mpicxx} -DMPIEXEC_EXECUTABLE=${mpiexec})
run(${CMAKE_COMMAND} --build ${WORK_DIR} --target mpi_transport_test)
# MPICH's ranks spin inside its collectives: with more ranks than cores they are slow, so few are enough.
foreach(ranks IN ITEMS 1 2 3 4)
  run(${PYTHON} -B ${SOURCE_DIR}/tests/mpi/mpirun.py --launcher ${mpiexec} -n ${ranks} ${WORK_DIR}/tests/mpi_transport_test)
endforeach()
