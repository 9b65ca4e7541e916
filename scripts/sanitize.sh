#!/usr/bin/env bash
# The unit tests of the folders that read files and text, under the address and undefined-behaviour sanitizers.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset asan > /dev/null
tests=(base_test text_test data_test graph_test ops_test memory_test checkpoint_test)
available=()
for test in "${tests[@]}"; do
  ninja -C build-asan -t query "$test" >/dev/null 2>&1 && available+=("$test")
done
cmake --build build-asan --target "${available[@]}"
for test in "${available[@]}"; do
  echo "== $test (address, undefined)"
  ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=halt_on_error=1 timeout 600 "build-asan/src/${test%_test}/$test" --gtest_brief=1
done
