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

unavailable() {
  echo "gguf oracle: NOT RUN: $1. It needs Node.js 20 or newer and, from npm, node-llama-cpp@$version with" >&2
  echo "@node-llama-cpp/linux-x64@$version." >&2
  exit 1
}

command -v node >/dev/null || unavailable "there is no node"
command -v npm >/dev/null || unavailable "there is no npm"
[ "$(node -p 'parseInt(process.versions.node)')" -ge 20 ] || unavailable "node is $(node --version)"
[ -x "$root/build/ingot" ] || unavailable "build/ingot is not built"
mkdir -p "$work"
installed=$(node -p "require('$work/node_modules/@node-llama-cpp/linux-x64/package.json').version" 2>/dev/null || true)
if [ "$installed" != "$version" ]; then
  echo '{"private": true}' > "$work/package.json"
  # The binary is named; what else is optional would bring builds for every GPU along.
  (cd "$work" && npm install --ignore-scripts --omit=optional --no-audit --no-fund --loglevel=error \
    "node-llama-cpp@$version" "@node-llama-cpp/linux-x64@$version") || unavailable "npm could not install the packages"
fi
exec node "$here/gguf.mjs" "$root" "$work"
