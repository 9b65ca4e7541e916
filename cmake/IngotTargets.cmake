# ingot_folder(NAME DEPS folder… LIBS target…): the library ingot_NAME from every source of the current folder and of the
# folders below it. Names decide what a file is: X_test.cc is a part of the folder's test program, X_bench.cc of its
# benchmark program, X_fuzz.cc a fuzz target of its own; all else is the library. A new file needs no change here.
include(CMakeParseArguments)

add_library(ingot_flags INTERFACE)
target_compile_options(ingot_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wno-unused-parameter
                       $<$<BOOL:${INGOT_WERROR}>:-Werror> -fno-math-errno -ffp-contract=off
                       # GCC 12 warns falsely inside std::string (its bugs 105651 and 105329).
                       "$<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(ingot_flags INTERFACE -march=x86-64-v2)
endif()
if(INGOT_SANITIZE)
  target_compile_options(ingot_flags INTERFACE -fsanitize=${INGOT_SANITIZE} -fno-omit-frame-pointer -g)
  target_link_options(ingot_flags INTERFACE -fsanitize=${INGOT_SANITIZE})
endif()

# One precompiled header for all libraries and one for all tests: what nearly every file includes anyway.
set(INGOT_COMMON_HEADERS <algorithm> <array> <cmath> <cstdint> <functional> <map> <memory> <optional> <span> <string>
                         <string_view> <variant> <vector> <fmt/format.h>)
set(INGOT_TEST_HEADERS ${INGOT_COMMON_HEADERS} <filesystem> <gtest/gtest.h> <nlohmann/json.hpp>)

# Precompiles a list of headers once: the first target that asks makes the file, the others take it.
function(ingot_precompiled target headers)
  get_property(first GLOBAL PROPERTY ${headers}_TARGET)
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
    return()
  endif()
  target_precompile_headers(${target} PRIVATE ${${headers}})
  set_property(GLOBAL PROPERTY ${headers}_TARGET ${target})
endfunction()

# Settings that every test program shares; the first one makes the precompiled header that the others reuse.
function(ingot_test_program target)
  target_link_libraries(${target} PRIVATE ingot_flags GTest::gtest_main fmt::fmt OpenMP::OpenMP_CXX)
  target_compile_definitions(${target} PRIVATE INGOT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  ingot_precompiled(${target} INGOT_TEST_HEADERS)
  # Several files at a time: the templates that they share are then made once.
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 4)
endfunction()

function(ingot_folder name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  set(benches ${sources})
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")
  set(fuzzers ${sources})
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|bench|fuzz)\\.cc$")
  list(TRANSFORM ARG_DEPS PREPEND ingot_ OUTPUT_VARIABLE deps)

  if(NOT sources)
    message(WARNING "src/${name} has no sources yet")
    return()
  endif()
  add_library(ingot_${name} STATIC ${sources})
  add_library(Ingot::${name} ALIAS ingot_${name})
  set_target_properties(ingot_${name} PROPERTIES EXPORT_NAME ${name} LINKER_LANGUAGE CXX)
  target_include_directories(ingot_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
                                                  $<INSTALL_INTERFACE:include/ingot>)
  target_link_libraries(ingot_${name} PUBLIC ${deps} ${ARG_LIBS})
  target_link_libraries(ingot_${name} PRIVATE $<BUILD_INTERFACE:ingot_flags>)
  ingot_precompiled(ingot_${name} INGOT_COMMON_HEADERS)
  set_property(GLOBAL APPEND PROPERTY INGOT_LIBRARIES ingot_${name})
  install(TARGETS ingot_${name} EXPORT IngotTargets ARCHIVE DESTINATION lib)
  install(DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/ DESTINATION include/ingot/${name} FILES_MATCHING PATTERN "*.h")

  if(INGOT_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE ingot_${name})
    ingot_test_program(${name}_test)
    add_test(NAME ${name} COMMAND ${name}_test)
    set_tests_properties(${name} PROPERTIES LABELS unit)
  endif()
  if(INGOT_BENCHMARKS AND benches)
    add_executable(${name}_bench ${benches})
    target_link_libraries(${name}_bench PRIVATE ingot_${name} ingot_flags benchmark::benchmark_main)
  endif()
  if(INGOT_FUZZ)
    foreach(fuzzer IN LISTS fuzzers)
      get_filename_component(target ${fuzzer} NAME_WE)
      add_executable(${target} ${fuzzer})
      target_link_libraries(${target} PRIVATE ingot_${name} ingot_flags)
      target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    endforeach()
  endif()
endfunction()
