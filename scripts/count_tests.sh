#!/usr/bin/env bash
# Prints "N passed, N failed" for the last ctest run of a build directory, from its JUnit report.
set -euo pipefail
report=${1:?build directory}/ctest.xml
total=$(grep -c '<testcase ' "$report" || true)
failed=$(grep -c 'status="fail"' "$report" || true)
echo "$((total - failed)) passed, $failed failed"
