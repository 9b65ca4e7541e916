#!/usr/bin/env bash
# Whether a model ends where fp32 ends: trains a preset on real text in each precision with each seed, and prints the
# validation losses, the spread of fp32's seeds, and each precision's mean difference from fp32 on the same seed.
#   bench/precision_seeds.sh [--preset llama-10m] [--steps 1000] [--tokens 2048] [--seeds "1 2 3"] [--precisions "fp32 bf16 fp16"]
#                            [--out DIR] [INGOT]
# Runs that are done are not run again: interrupted, it goes on where it was. Text: Debian's python3.11-doc.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=llama-10m steps=1000 tokens=2048 seeds="1 2 3" precisions="fp32 bf16 fp16" out=runs/precision ingot=build/ingot
while [ $# -gt 0 ]; do
  case $1 in
    --preset | --steps | --tokens | --seeds | --precisions | --out) declare "${1#--}=$2"; shift ;;
    *) ingot=$1 ;;
  esac
  shift
done
length=256
mkdir -p "$out"
[ -f "$out/text.txt" ] || zcat /usr/share/info/python3.11.info.gz > "$out/text.txt"
for seed in $seeds; do
  for precision in $precisions; do
    run="$out/$precision-$seed"
    [ -f "$run/model/config.json" ] && continue
    cat > "$out/config.yaml" <<YAML
output_dir: $run
seed: $seed
model: {preset: $preset}
tokenizer: {path: $out/tokenizer.json, train_vocab_size: 8192}
data: {train: [{path: $out/text.txt}], validation_fraction: 0.02, sequence_length: $length}
training: {steps: $steps, global_batch_size: $((tokens / length)), precision: $precision}
optimizer: {learning_rate: 1.0e-3}
schedule: {type: cosine, warmup_steps: $((steps / 20))}
evaluation: {every_steps: $steps, max_batches: 50}
checkpoint: {every_steps: 0, keep: 1}
YAML
    "$ingot" train "$out/config.yaml" > /dev/null 2> "$run.log" || { tail -5 "$run.log" >&2; exit 1; }
  done
done
loss() { tail -1 "$out/$1-$2/evaluation.csv" | cut -d, -f2; }
for precision in $precisions; do
  line="$precision"
  for seed in $seeds; do line+=" $(loss "$precision" "$seed")"; done
  echo "$line"
done | awk '
  { if (NR == 1) { n = NF; for (i = 2; i <= n; ++i) base[i] = $i }
    least = most = $2; difference = 0
    for (i = 2; i <= n; ++i) { if ($i < least) least = $i; if ($i > most) most = $i; difference += ($i - base[i]) / (n - 1) }
    line = sprintf("%-5s", $1); for (i = 2; i <= n; ++i) line = line sprintf(" %.5f", $i)
    printf "%s   spread of seeds %.5f, mean difference from %s %+.5f\n", line, most - least, first = (NR == 1 ? $1 : first), difference }'
