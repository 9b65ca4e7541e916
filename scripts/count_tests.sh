#!/usr/bin/env bash
# Prints "N passed, N failed" for the last ctest run of a build directory, from its JUnit report.
set -euo pipefail
report=${1:?build directory}/ctest.xml
[ -r "$report" ] || { echo "there is no $report: ctest has not run" >&2; exit 1; }
total=$(grep -c '<testcase ' "$report" || true)
passed=$(grep -c '<testcase .*status="run"' "$report" || true)
echo "$passed passed, $((total - passed)) failed"
