# pando_module(NAME [DEPENDS module...] [LINK library...] SOURCES file... [TESTS file...] [TEST_LINK library...])
#
# One folder of src/ is one static library `pando_NAME` (alias pando::NAME) and, where it has tests, one test program
# `NAME_test` labelled "unit". DEPENDS names other modules; scripts/check-includes enforces the same table on #include lines.

option(PANDO_WERROR "Treat compiler warnings as errors" OFF)
set(PANDO_SANITIZE "" CACHE STRING "Sanitizers to build with, as for -fsanitize=")

add_library(pando_flags INTERFACE)
target_compile_features(pando_flags INTERFACE cxx_std_20)
target_include_directories(pando_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
target_compile_options(pando_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> $<$<COMPILE_LANGUAGE:CXX>:-Wold-style-cast>
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
  # What a designated initializer leaves out has its default.
  -Wno-missing-field-initializers
  # Bits are the law: the compiler may neither fuse nor reassociate what the source does not.
  -ffp-contract=off -fno-fast-math
  $<$<BOOL:${PANDO_WERROR}>:-Werror>)
if(CMAKE_UNITY_BUILD)
  # GCC 12 sees overlapping copies in assignments of literals to strings (its bug 105651), the more the larger the file.
  target_compile_options(pando_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
endif()
if(PANDO_SANITIZE)
  # GCC 12 takes what the sanitizers add for uses of uninitialised variables, in the standard library's own regex.
  target_compile_options(pando_flags INTERFACE
    -fsanitize=${PANDO_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(pando_flags INTERFACE -fsanitize=${PANDO_SANITIZE})
endif()

set_property(GLOBAL PROPERTY pando_modules "")

function(pando_module name)
  cmake_parse_arguments(arg "" "" "DEPENDS;LINK;SOURCES;TESTS;TEST_LINK" ${ARGN})
  add_library(pando_${name} STATIC ${arg_SOURCES})
  add_library(pando::${name} ALIAS pando_${name})
  list(TRANSFORM arg_DEPENDS PREPEND pando_)
  target_link_libraries(pando_${name} PUBLIC ${arg_DEPENDS} ${arg_LINK} PRIVATE $<BUILD_INTERFACE:pando_flags>)
  target_include_directories(pando_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  set_property(GLOBAL APPEND PROPERTY pando_modules pando_${name})
  if(PANDO_BUILD_TESTS AND arg_TESTS)
    pando_test(${name}_test UNIT SOURCES ${arg_TESTS} LINK pando_${name} ${arg_TEST_LINK})
  endif()
endfunction()

# pando_nothing_hot(TARGET): optimised less. For tests and the command line, which are most of what is compiled.
function(pando_nothing_hot target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# In seconds. Under sanitizers everything takes ten times as long.
set(pando_test_timeout 600)
if(PANDO_SANITIZE)
  set(pando_test_timeout 2400)
endif()

# All that the tests labelled "unit" need: what is built under the sanitizers.
add_custom_target(unit_tests)

# pando_test(NAME [UNIT] SOURCES file... LINK library...): a GoogleTest program, one ctest entry per program.
function(pando_test name)
  cmake_parse_arguments(arg "UNIT" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK} pando_flags GTest::gtest_main GTest::gmock rapidcheck)
  pando_nothing_hot(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  # The seed is fixed so that a red run can be had again; RC_PARAMS in the environment overrides it.
  set_tests_properties(${name} PROPERTIES TIMEOUT ${pando_test_timeout} ENVIRONMENT "RC_PARAMS=seed=20240804 max_success=200")
  if(arg_UNIT)
    set_tests_properties(${name} PROPERTIES LABELS unit)
    add_dependencies(unit_tests ${name})
  else()
    set_tests_properties(${name} PROPERTIES LABELS integration)
  endif()
endfunction()
