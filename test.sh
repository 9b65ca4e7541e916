#!/usr/bin/env bash
# Installs what is missing, builds everything, runs every test. Its last line counts them.
#   ./test.sh [--full]      --full: also the oracles (PyTorch), which must be installable
set -euo pipefail
cd "$(dirname "$0")"
full=false
case ${1:-} in
  "") ;;
  --full) full=true ;;
  *) echo "usage: ./test.sh [--full]" >&2; exit 2 ;;
esac
sections=(build checks)
$full && sections+=(oracles)
scripts/install_packages.sh "${sections[@]}"

cmake --preset release -DINGOT_TESTS=ON -DINGOT_BENCHMARKS=ON -DINGOT_WERROR=ON
cmake --build build

scripts/check_tree.sh
status=0
ctest --test-dir build --output-on-failure --timeout 900 --output-junit ctest.xml || status=$?
if $full; then
  for oracle in tests/oracles/*.sh; do
    [ -e "$oracle" ] || continue
    echo "== $oracle"
    bash "$oracle" || status=1
  done
fi
scripts/count_tests.sh build
exit $status
