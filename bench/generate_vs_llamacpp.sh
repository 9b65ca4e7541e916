#!/usr/bin/env bash
# Milliseconds a generated token beside llama.cpp, in turn. See generate_vs_llamacpp.mjs.
#   bench/generate_vs_llamacpp.sh [--rounds 5] [--tokens 64] [--threads 2]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/.." && pwd)
oracle="generation speed"
source "$root/tests/oracles/llama_cpp_package.bash"
install_llama_cpp
exec node "$here/generate_vs_llamacpp.mjs" "$root" "$packages" "$@"
