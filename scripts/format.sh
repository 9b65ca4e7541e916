#!/usr/bin/env bash
# Formats every C and C++ file that git knows.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files '*.cc' '*.h' '*.c' | xargs clang-format -i
