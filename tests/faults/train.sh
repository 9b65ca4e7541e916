#!/usr/bin/env bash
# A whole training run under faults: a tokenizer is trained, shards are built, checkpoints saved every few steps, validation,
# metrics, the final model. Whatever happens, the run that is started again must end as one that was never disturbed: the same
# metrics (step, tokens, loss, learning rate, norm), evaluations and weights, to the last bit.
#   train.sh INGOT KILL_AT_SO WORK_DIR [options of kill_everywhere.sh…]
set -euo pipefail
ingot=$1
lib=$2
work=$3
shift 3
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$work"
for i in $(seq 300); do echo "Line $i says that the sum of $i and $((i * i % 97)) is $((i + i * i % 97))."; done > "$work/text.txt"
cat > "$work/config.yaml" <<E2
model: {config: {model_type: llama, hidden_size: 16, intermediate_size: 24, num_hidden_layers: 1, num_attention_heads: 2}}
data: {train: [{path: $work/text.txt}], validation_fraction: 0.1, sequence_length: 16}
training: {steps: 12, global_batch_size: 2}
schedule: {warmup_steps: 2}
checkpoint: {every_steps: 3, keep: 2}
evaluation: {every_steps: 5, max_batches: 2}
logging: {every_steps: 1}
threads: 1
E2
same='cmp {ref}/run/model/model.safetensors {out}/run/model/model.safetensors
 && cmp {ref}/run/evaluation.csv {out}/run/evaluation.csv
 && cmp {ref}/tokenizer.json {out}/tokenizer.json
 && cmp <(cut -d, -f1,2,4,5,6 {ref}/run/metrics.csv) <(cut -d, -f1,2,4,5,6 {out}/run/metrics.csv)
 && ! find {out} -name "*.tmp*" -o -name "*.old*" | grep -q .'
exec "$here/kill_everywhere.sh" --work "$work/faults" --lib "$lib" --compare "$(tr '\n' ' ' <<<"$same")" "$@" -- \
  "$ingot" train "$work/config.yaml" output_dir={out}/run tokenizer.path={out}/tokenizer.json tokenizer.train_vocab_size=300
