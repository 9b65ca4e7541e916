#!/usr/bin/env bash
# Rules of the tree that no compiler checks: formatting, which folder may include which, headers that compile alone are left
# to the build. Fails with the list of what breaks a rule.
set -euo pipefail
cd "$(dirname "$0")/.."
status=0

# The folders in the order in which data flows: each may include itself and those before it.
order=(base text data graph ops kernels nn models autodiff parallel passes memory cost comm runtime optim checkpoint export plan train infer)
rank() {
  for i in "${!order[@]}"; do [ "${order[$i]}" = "$1" ] && { echo "$i"; return; }; done
  echo -1
}
while IFS=: read -r file line include; do
  folder=$(cut -d/ -f2 <<<"$file")
  target=$(sed -n 's/.*"\([a-z]*\)\/.*/\1/p' <<<"$include")
  from=$(rank "$folder")
  to=$(rank "$target")
  [ "$to" -ge 0 ] || continue
  if [ "$from" -lt 0 ]; then echo "$file:$line: the folder $folder is not in the order of folders"; status=1; continue; fi
  if [ "$to" -gt "$from" ]; then echo "$file:$line: $folder includes $target, which comes after it"; status=1; fi
  if [[ $folder == kernels || $folder == comm ]] && [[ $target != "$folder" && $target != base ]]; then
    echo "$file:$line: $folder may include base alone, not $target"; status=1
  fi
done < <(git ls-files 'src/*.h' 'src/*.cc' | grep -vE '_(test|bench|fuzz)\.cc$' | xargs grep -nE '^#include "[a-z]+/' /dev/null)

if git ls-files 'src/*.cc' 'src/*.h' | grep -vE '_(test|bench|fuzz)\.cc$' | xargs grep -nE '[^_a-z]exit\(|std::abort|std::cout' /dev/null; then
  echo "above: no exit, abort or stdout below cli/"; status=1
fi

if command -v clang-format >/dev/null; then
  if ! git ls-files '*.cc' '*.h' '*.c' | xargs clang-format --dry-run --Werror 2>format.log; then
    head -20 format.log
    echo "the tree differs from .clang-format: run scripts/format.sh"; status=1
  fi
  rm -f format.log
fi
exit $status
