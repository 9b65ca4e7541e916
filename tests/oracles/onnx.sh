#!/usr/bin/env bash
# ONNX graphs against ONNX Runtime: models exported by `ingot export` run there (through onnxruntime-node of npm) in batches,
# with and without a past, and with padding on the left, and must give the logits that Ingot computes for each sequence alone,
# within 1e-4.
#   tests/oracles/onnx.sh          (after the build; the package is installed into build/oracles/onnx)
# Exit status: 0 all agree, 1 something differs or ONNX Runtime is not to be had (which is said).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/build/oracles/onnx
logits=$root/build/tests/oracles/sequence_logits
version=1.30.0

unavailable() {
  echo "onnx oracle: NOT RUN: $1. It needs Node.js 20 or newer and, from npm, onnxruntime-node@$version." >&2
  exit 1
}

command -v node >/dev/null || unavailable "there is no node"
command -v npm >/dev/null || unavailable "there is no npm"
[ "$(node -p 'parseInt(process.versions.node)')" -ge 20 ] || unavailable "node is $(node --version)"
[ -x "$root/build/ingot" ] || unavailable "build/ingot is not built"
[ -x "$logits" ] || unavailable "$logits is not built (cmake -DINGOT_TESTS=ON)"
mkdir -p "$work"
installed=$(node -p "require('$work/node_modules/onnxruntime-node/package.json').version" 2>/dev/null || true)
if [ "$installed" != "$version" ]; then
  echo '{"private": true}' > "$work/package.json"
  # The CPU's binaries are in the package itself; its script would fetch builds for GPUs.
  (cd "$work" && npm install --ignore-scripts --omit=optional --no-audit --no-fund --loglevel=error \
    "onnxruntime-node@$version") || unavailable "npm could not install the package"
fi
exec node "$here/onnx.mjs" "$root" "$work" "$logits"
