# purlin_room(NAME DEPS a b): one static library per folder of src/. DEPS are the lower rooms it may
# include; the include path is src/, so the link line is what keeps the layering.
# Every *_test.cc beside the sources goes into one test program, NAME_test.
function(purlin_room name)
  cmake_parse_arguments(arg "" "" "DEPS;LIBS;EXCLUDE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  foreach(pattern IN LISTS arg_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${pattern}")
    list(FILTER headers EXCLUDE REGEX "${pattern}")
    list(FILTER tests EXCLUDE REGEX "${pattern}")
  endforeach()
  if(NOT sources)
    set(sources ${PROJECT_SOURCE_DIR}/cmake/empty.cc)
  endif()
  add_library(purlin_${name} STATIC ${sources})
  target_sources(purlin_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${headers})
  # `cmake --build … --target all_verify_interface_header_sets` compiles each header on its own.
  set_target_properties(purlin_${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  target_include_directories(purlin_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  list(TRANSFORM arg_DEPS PREPEND purlin_)
  target_link_libraries(purlin_${name} PUBLIC ${arg_DEPS} PRIVATE purlin_warnings ${arg_LIBS})
  if(PURLIN_BUILD_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE purlin_${name} purlin_warnings GTest::gtest GTest::gtest_main)
    target_compile_definitions(${name}_test PRIVATE PURLIN_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    target_compile_options(${name}_test PRIVATE ${PURLIN_TEST_OPTIONS})
    purlin_static_runtime(${name}_test)  # the bundle takes some of them to GPU machines
    gtest_discover_tests(${name}_test TEST_PREFIX "${name}/" DISCOVERY_TIMEOUT 300
      PROPERTIES TIMEOUT 600 LABELS unit)
  endif()
endfunction()

# Carries libstdc++ inside in release builds, so that the binary runs on systems with an older one. A
# sanitizer's runtime wants the shared one.
function(purlin_static_runtime target)
  if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT PURLIN_SANITIZE)
    # Unused parts of libstdc++ go, and with them arc4random, which is newer than Ubuntu 22.04's glibc.
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,--gc-sections)
  endif()
endfunction()
