#!/usr/bin/env bash
# GGUF files against llama.cpp itself: models exported by `ingot export` run there (through node-llama-cpp of npm) and must
# give the ids that `ingot generate` gives, greedily, over 100 tokens; texts must get the ids of `ingot tokenizer encode`.
#   tests/oracles/gguf.sh          (after the build; the packages are installed into build/oracles/gguf)
# Exit status: 0 all agree, 1 something differs or llama.cpp is not to be had (which is said).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/build/oracles/gguf
version=3.22.1
oracle=gguf needs="node-llama-cpp@$version with @node-llama-cpp/linux-x64@$version"
source "$here/npm.bash"

[ -x "$root/build/ingot" ] || unavailable "build/ingot is not built"
npm_packages "$work" @node-llama-cpp/linux-x64 "$version" "node-llama-cpp@$version" "@node-llama-cpp/linux-x64@$version"
exec node "$here/gguf.mjs" "$root" "$work"
