# The installed package: one static library of all modules, the public headers, the program where it was built, and what
# find_package(pando) reads.
include(CMakePackageConfigHelpers)

get_property(modules GLOBAL PROPERTY pando_modules)
list(REMOVE_ITEM modules pando_cli pando_bench pando_plot)  # The program's own parts are not the library's.
list(TRANSFORM modules REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE module_objects)

add_library(pando_library STATIC ${module_objects})
add_library(pando::pando ALIAS pando_library)
set_target_properties(pando_library PROPERTIES OUTPUT_NAME pando EXPORT_NAME pando LINKER_LANGUAGE CXX)
target_compile_features(pando_library INTERFACE cxx_std_20)
target_include_directories(pando_library INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# What pandoConfig.cmake finds again. No public header needs any of it, hence PRIVATE: users only link it.
target_link_libraries(pando_library PRIVATE fmt::fmt hwy::hwy Threads::Threads PkgConfig::hwloc PkgConfig::pcre2 $<$<BOOL:${PANDO_HAVE_MPI}>:MPI::MPI_CXX>)
if(PANDO_SANITIZE)
  target_link_options(pando_library INTERFACE $<BUILD_INTERFACE:-fsanitize=${PANDO_SANITIZE}>)
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/pando)
install(TARGETS pando_library EXPORT pando_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/pando DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT pando_targets FILE pandoTargets.cmake NAMESPACE pando:: DESTINATION ${package_dir})
if(TARGET pando)
  install(TARGETS pando RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET pando-simulator)
  install(TARGETS pando-simulator RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

configure_package_config_file(cmake/pandoConfig.cmake.in ${PROJECT_BINARY_DIR}/pandoConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/pandoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/pandoConfig.cmake ${PROJECT_BINARY_DIR}/pandoConfigVersion.cmake
  DESTINATION ${package_dir})
