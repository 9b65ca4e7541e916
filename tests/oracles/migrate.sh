#!/usr/bin/env bash
# docs/migrate.md from end to end: a small model made by `ingot verify --shrink`, its reference dumped from PyTorch by
# dump_reference.py, and `ingot verify` on the whole, on each block alone and along a curve; a wrong weight must be found.
#   tests/oracles/migrate.sh          (after the build; needs python3-torch and python3-numpy)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
ingot=$(realpath "${INGOT:-$here/../../build/ingot}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1
status=0

# expect STATUS WHAT COMMAND…
expect() {
  local wanted=$1 what=$2 found=0
  shift 2
  "$@" > "$work/log" 2>&1 || found=$?
  if [ "$found" = "$wanted" ]; then echo "ok   $what"; return; fi
  echo "FAIL $what: status $found, expected $wanted"
  tail -5 "$work/log"
  status=1
}

mkdir "$work/large"
cat > "$work/large/config.json" <<'END'
{"model_type": "gemma2", "vocab_size": 211, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
 "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "query_pre_attn_scalar": 224, "rms_norm_eps": 1e-6,
 "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "sliding_window": 4096, "hidden_act": "gelu_pytorch_tanh"}
END
expect 0 "a small model of the same kind" "$ingot" verify "$work/large" --shrink 4x54 --out "$work/small"
verify() { "$ingot" verify "$work/small" --reference "$work/small/reference.safetensors" "$@"; }
for options in "--batch 2 --seq 40 --train-steps 10" "--batch 2 --seq 40 --documents --ignore-fraction 0.2"; do
  # shellcheck disable=SC2086
  expect 0 "its reference ($options)" /usr/bin/python3 "$here/gemma2.py" --model "$work/small" $options
  expect 0 "  every tensor agrees" verify
  expect 0 "  op by op, too" verify --mode eager
  for layer in 0 1 2 3; do expect 0 "  block $layer alone" verify --layer "$layer"; done
done
expect 0 "its reference of 120 steps" /usr/bin/python3 "$here/gemma2.py" --model "$work/small" --train-steps 120
expect 0 "  the curve agrees" verify --curve-tolerance 0.01
expect 0 "a model with another seed" "$ingot" verify "$work/large" --shrink 4x54 --seed 1 --out "$work/other"
cp "$work/other/model.safetensors" "$work/small/"
expect 1 "  is found to differ" verify
exit $status
