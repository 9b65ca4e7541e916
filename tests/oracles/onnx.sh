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
oracle=onnx needs="onnxruntime-node@$version"
source "$here/npm.bash"

[ -x "$root/build/ingot" ] || unavailable "build/ingot is not built"
[ -x "$logits" ] || unavailable "$logits is not built (cmake -DINGOT_TESTS=ON)"
# The CPU's binaries are in the package itself; its script would fetch builds for GPUs.
npm_packages "$work" onnxruntime-node "$version" "onnxruntime-node@$version"
exec node "$here/onnx.mjs" "$root" "$work" "$logits"
