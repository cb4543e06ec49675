# Installs the build into an empty folder, builds the consumer project against it, and runs what was installed.
#
#   cmake -DBUILD_DIR=... -DSOURCE_DIR=... -DWORK_DIR=... -DCC=... -DCXX=... -P install_test.cmake

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGV}: exit code ${code}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
set(prefix ${WORK_DIR}/prefix)
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix})

# A package that can be moved names neither the source tree nor the build tree.
file(GLOB_RECURSE package_files ${prefix}/*.cmake)
foreach(file IN LISTS package_files)
  file(READ ${file} text)
  foreach(dir IN ITEMS ${SOURCE_DIR} ${BUILD_DIR})
    string(FIND "${text}" "${dir}/" position)
    if(NOT position EQUAL -1)
      message(FATAL_ERROR "${file} names ${dir}")
    endif()
  endforeach()
endforeach()

# Moved: the consumer must find it where it is, not where it was installed.
file(RENAME ${prefix} ${WORK_DIR}/moved)
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE_DIR}/tests/install/consumer -B ${WORK_DIR}/consumer
    -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${WORK_DIR}/moved -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/consumer)
run(${WORK_DIR}/consumer/consumer)
if(NOT output STREQUAL "ok=1 attention=2\n")
  message(FATAL_ERROR "the consumer printed '${output}'")
endif()
run(${WORK_DIR}/consumer/c_consumer)
if(NOT output STREQUAL "ok=1 attention=3\n")
  message(FATAL_ERROR "the consumer in C printed '${output}'")
endif()

if(EXISTS ${WORK_DIR}/moved/bin/pando)
  run(${WORK_DIR}/moved/bin/pando --help)
elseif(WITH_PROGRAM)
  message(FATAL_ERROR "the program was built and not installed")
endif()
