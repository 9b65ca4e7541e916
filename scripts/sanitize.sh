#!/usr/bin/env bash
# Every folder's unit tests under the address and undefined-behaviour sanitizers; what has threads of its own (batches made
# ahead, checkpoints written behind) under the thread sanitizer too, which does not know OpenMP's.
#   scripts/sanitize.sh [FOLDER…]     default: all of src/
set -euo pipefail
cd "$(dirname "$0")/.."

folders=("$@")
[ ${#folders[@]} -gt 0 ] || mapfile -t folders < <(git ls-files 'src/*_test.cc' | cut -d/ -f2 | sort -u)
cmake --preset asan > /dev/null
cmake --build build-asan --target "${folders[@]/%/_test}"
for folder in "${folders[@]}"; do
  echo "== $folder (address, undefined)"
  UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 OMP_NUM_THREADS=2 \
    timeout 900 "build-asan/src/$folder/${folder}_test" --gtest_brief=1
done
[ $# -eq 0 ] || exit 0

cmake --preset tsan > /dev/null
cmake --build build-tsan --target data_test checkpoint_test
echo "== data, checkpoint (thread)"
export TSAN_OPTIONS=halt_on_error=1
timeout 600 build-tsan/src/data/data_test --gtest_brief=1 --gtest_filter='BatchStream.*'
# Those left out fork, or copy on many OpenMP threads.
timeout 600 build-tsan/src/checkpoint/checkpoint_test --gtest_brief=1 --gtest_filter='*Saves.*:-*Killed*:*OnManyThreads*'
