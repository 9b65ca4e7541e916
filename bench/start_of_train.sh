#!/usr/bin/env bash
# How long `ingot train` takes from its start to the start of its first step, with shards built before: the moment at
# which the first line of metrics.csv appears, less the duration of the step that it tells of.
#   bench/start_of_train.sh [INGOT [PRESET]]      defaults: build/ingot gpt2-124m
set -euo pipefail
cd "$(dirname "$0")/.."
ingot=$(realpath "${1:-build/ingot}")
preset=${2:-gpt2-124m}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
seq 1 200000 | awk '{ printf "Line %d of a text that is long enough.\n", $1 }' > "$work/text.txt"
cat > "$work/config.yaml" <<YAML
output_dir: $work/run
model: {preset: $preset}
tokenizer: {path: $work/tokenizer.json, train_vocab_size: 2000}
data: {train: [{path: $work/text.txt}], sequence_length: 256}
training: {steps: 1, global_batch_size: 1}
checkpoint: {every_steps: 0, resume: never}
YAML
run() { "$ingot" train "$work/config.yaml" > /dev/null 2> "$work/log"; }
run  # builds tokenizer and shards
for _ in 1 2 3; do
  rm -f "$work/run/metrics.csv"
  start=$(date +%s%N)
  run &
  until [ "$(wc -l 2> /dev/null < "$work/run/metrics.csv" || echo 0)" -ge 2 ]; do
    kill -0 $! 2> /dev/null || [ -f "$work/run/metrics.csv" ] || { cat "$work/log" >&2; exit 1; }
    sleep 0.002
  done
  end=$(date +%s%N)
  wait $!
  awk -F, -v seconds="$(((end - start) / 1000000))" -v preset="$preset" '
    NR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i }
    NR == 2 { printf "%s: %.0f ms to the first step, which took %.0f ms\n", preset, seconds - $column["step_ms"], $column["step_ms"] }
  ' "$work/run/metrics.csv"
done
