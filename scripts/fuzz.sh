#!/usr/bin/env bash
# Each fuzz target for a short while. FUZZ_SECONDS: for how long each (default 5). FUZZ_FOLDERS: of which folders (default
# those that build in a minute or two; "train" fuzzes configurations and builds nearly everything).
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-5}
cmake --preset fuzz > /dev/null
targets=()
folders=${FUZZ_FOLDERS:-base text data graph checkpoint}
for source in $(for folder in $folders; do git ls-files "src/$folder/*_fuzz.cc"; done); do targets+=("$(basename "$source" .cc)"); done
cmake --build build-fuzz --target "${targets[@]}"
for target in "${targets[@]}"; do
  echo "== $target"
  program=$(find build-fuzz -type f -name "$target" -perm -u+x | head -1)
  (cd "$(dirname "$program")" && timeout $((seconds + 60)) "./$target" -max_total_time="$seconds" -rss_limit_mb=4096 -print_final_stats=0 > fuzz.log 2>&1) || { tail -30 "$(dirname "$program")/fuzz.log"; exit 1; }
done
