#!/usr/bin/env bash
# Each fuzz target for a short while. FUZZ_SECONDS: for how long each (default 5).
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-5}
cmake --preset fuzz > /dev/null
targets=()
for source in $(git ls-files '*_fuzz.cc'); do targets+=("$(basename "$source" .cc)"); done
cmake --build build-fuzz --target "${targets[@]}"
for target in "${targets[@]}"; do
  echo "== $target"
  program=$(find build-fuzz -type f -name "$target" -perm -u+x | head -1)
  (cd "$(dirname "$program")" && timeout $((seconds + 60)) "./$target" -max_total_time="$seconds" -rss_limit_mb=4096 -print_final_stats=0 > fuzz.log 2>&1) || { tail -30 "$(dirname "$program")/fuzz.log"; exit 1; }
done
