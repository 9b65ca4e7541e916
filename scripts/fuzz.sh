#!/usr/bin/env bash
# The fuzz targets (src/*/*_fuzz.cc) under the address and undefined-behaviour sanitizers, one after another; any finding
# ends it with status 1, the end of the target's log and the input's file in build-fuzz/. Each starts from the seeds in
# tests/fuzz/TARGET/ and from what it found before, which stays in build-fuzz/corpus/TARGET/. Its inputs are up to twice as
# long as the longest seed: what is longer is slower and reaches nothing else.
#   FUZZ_SECONDS   for how long each runs (default 5)
#   FUZZ_RUNS      instead of that: until each has done so many runs
#   FUZZ_FOLDERS   of which folders (default those that build in a few minutes: "text data")
# Ten million runs of each parser, which take hours:
#   FUZZ_RUNS=10000000 FUZZ_FOLDERS="text data models checkpoint train" scripts/fuzz.sh
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
seconds=${FUZZ_SECONDS:-5}
runs=${FUZZ_RUNS:-}
folders=${FUZZ_FOLDERS:-text data}

sources=()
for folder in $folders; do
  mapfile -t -O "${#sources[@]}" sources < <(git ls-files "src/$folder/*_fuzz.cc")
done
[ ${#sources[@]} -gt 0 ] || { echo "fuzz.sh: no fuzz target in: $folders" >&2; exit 2; }
targets=()
for source in "${sources[@]}"; do targets+=("$(basename "$source" .cc)"); done

cmake --preset fuzz > /dev/null
cmake --build build-fuzz --target "${targets[@]}"

# Findings end the run, undefined behaviour included. Short stacks of allocations and a small quarantine of freed memory
# make the runs a third faster.
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export ASAN_OPTIONS=malloc_context_size=4:quarantine_size_mb=16
# Without entropic scheduling, whose bookkeeping alone takes half the time of programs this fast, and without looking for
# inputs of other processes in the corpus.
options=(-entropic=0 -reload=0 -rss_limit_mb=4096 -timeout=20 -print_final_stats=1 -artifact_prefix="$root/build-fuzz/")
if [ -n "$runs" ]; then options+=(-runs="$runs"); else options+=(-max_total_time="$seconds"); fi

for source in "${sources[@]}"; do
  target=$(basename "$source" .cc)
  directory=$root/build-fuzz/$(dirname "$source")
  corpus=$root/build-fuzz/corpus/$target
  seeds=$root/tests/fuzz/$target
  mkdir -p "$corpus"
  longest=$(find "$seeds" -type f -printf '%s\n' | sort -n | tail -1)
  log=$directory/$target.log
  (cd "$directory" && "./$target" "${options[@]}" -max_len=$((2 * longest)) "$corpus" "$seeds" > "$log" 2>&1) ||
    { tail -60 "$log"; echo "fuzz.sh: $target failed; its log is $log" >&2; exit 1; }
  awk -v target="$target" '/^stat::number_of_executed_units/ { runs = $2 } /^stat::average_exec_per_sec/ { rate = $2 }
    /DONE/ { for (i = 1; i < NF; ++i) if ($i == "cov:") covered = $(i + 1) }
    END { printf "%-22s %d runs, %d a second, %d edges covered\n", target, runs, rate, covered }' "$log"
done
