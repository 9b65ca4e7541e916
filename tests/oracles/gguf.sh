#!/usr/bin/env bash
# GGUF files against llama.cpp itself: models exported by `ingot export` run there (through node-llama-cpp of npm) and must
# give the ids that `ingot generate` gives, greedily, over 100 tokens, from the same logits; texts must get the ids of `ingot
# tokenizer encode`.
#   tests/oracles/gguf.sh [--store]   (after the build; the packages are installed into build/oracles/gguf)
# --store writes llama.cpp's ids for models of random weights to tests/golden/llama_cpp, for tests that run without it.
# Exit status: 0 all agree, 1 something differs or llama.cpp is not to be had (which is said).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
oracle=gguf
source "$here/llama_cpp_package.bash"
install_llama_cpp
exec node "$here/gguf.mjs" "$root" "$packages" "$@"
