#!/usr/bin/env bash
# Makes the reference numbers in references/ anew: small models of odd sizes, run in float64 by the reference
# implementations in PyTorch (reference.py, and tests/oracles/gemma2.py; docs/migrate.md documents what the files hold).
# Needed only when a case is added.
#
#   tests/golden/make_references.sh [REFERENCE_PY]      (default: ../shared/reference/reference.py beside the project)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
reference=${1:-$here/../../../shared/reference/reference.py}
[ -f "$reference" ] || { echo "make_references.sh: there is no $reference" >&2; exit 3; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# make NAME CONFIG OPTIONS…: references/NAME from a config.json object
make() {
  local name=$1 config=$2
  shift 2
  echo "$config" > "$work/config.json"
  /usr/bin/python3 "$reference" --config "$work/config.json" --out "$here/references/$name" --dtype float64 \
    --init-seed 7 --data-seed 11 --batch 2 --train-steps 10 "$@"
}

# make_gemma2 NAME CONFIG OPTIONS…: the same by gemma2.py, whose references also hold the gradients of hidden states
make_gemma2() {
  local name=$1 config=$2
  shift 2
  echo "$config" > "$work/config.json"
  /usr/bin/python3 "$here/../oracles/gemma2.py" --config "$work/config.json" --out "$here/references/$name" --train-steps 10 "$@"
}

packed=(--seq 7 --documents --ignore-fraction 0.2)

make gpt2 '{"model_type": "gpt2", "vocab_size": 29, "n_positions": 16, "n_embd": 12, "n_layer": 2, "n_head": 3}' \
  --seq 7
make gpt2-packed '{"model_type": "gpt2", "vocab_size": 29, "n_positions": 11, "n_embd": 12, "n_layer": 2, "n_head": 3,
  "n_inner": 20, "activation_function": "relu", "layer_norm_epsilon": 1e-3}' "${packed[@]}"
make gpt2-untied '{"model_type": "gpt2", "vocab_size": 31, "n_positions": 9, "n_embd": 10, "n_layer": 1, "n_head": 2,
  "activation_function": "gelu", "tie_word_embeddings": false, "initializer_range": 0.2}' --seq 9 --ignore-fraction 0.3
make llama '{"model_type": "llama", "vocab_size": 29, "hidden_size": 12, "intermediate_size": 20,
  "num_hidden_layers": 2, "num_attention_heads": 3}' --seq 7
make llama-gqa-packed '{"model_type": "llama", "vocab_size": 29, "hidden_size": 12, "intermediate_size": 22,
  "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 2, "tie_word_embeddings": true,
  "rms_norm_eps": 1e-5, "initializer_range": 0.2}' "${packed[@]}"
make llama-biases-head-dim '{"model_type": "llama", "vocab_size": 31, "hidden_size": 10, "intermediate_size": 14,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6, "attention_bias": true,
  "mlp_bias": true, "hidden_act": "gelu_pytorch_tanh", "rope_theta": 500.0}' "${packed[@]}"
make llama-rope-linear '{"model_type": "llama", "vocab_size": 29, "hidden_size": 12, "intermediate_size": 20,
  "num_hidden_layers": 1, "num_attention_heads": 2, "rope_scaling": {"type": "linear", "factor": 4.0},
  "initializer_range": 0.2}' --seq 19
make llama-rope-llama3 '{"model_type": "llama", "vocab_size": 29, "hidden_size": 16, "intermediate_size": 20,
  "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "rope_theta": 100.0,
  "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
  "original_max_position_embeddings": 64}, "initializer_range": 0.2}' --seq 19
make mistral-window '{"model_type": "mistral", "vocab_size": 29, "hidden_size": 12, "intermediate_size": 20,
  "num_hidden_layers": 1, "num_attention_heads": 3, "num_key_value_heads": 1, "sliding_window": 3,
  "initializer_range": 0.2}' "${packed[@]}"
make qwen2 '{"model_type": "qwen2", "vocab_size": 29, "hidden_size": 12, "intermediate_size": 20,
  "num_hidden_layers": 1, "num_attention_heads": 3, "num_key_value_heads": 1, "initializer_range": 0.2}' --seq 7
make qwen3 '{"model_type": "qwen3", "vocab_size": 29, "hidden_size": 12, "intermediate_size": 20,
  "num_hidden_layers": 1, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 8,
  "tie_word_embeddings": true, "initializer_range": 0.2}' "${packed[@]}"

make_gemma2 gemma2-packed '{"model_type": "gemma2", "vocab_size": 29, "hidden_size": 12, "intermediate_size": 20,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6, "query_pre_attn_scalar": 5,
  "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0, "sliding_window": 3, "rms_norm_eps": 1e-6,
  "initializer_range": 0.3}' --seq 11 --documents --ignore-fraction 0.2
make_gemma2 gemma2-uncapped '{"model_type": "gemma2", "vocab_size": 31, "hidden_size": 10, "intermediate_size": 14,
  "num_hidden_layers": 3, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 8, "query_pre_attn_scalar": 8,
  "attn_logit_softcapping": null, "final_logit_softcapping": null, "sliding_window": 4, "attention_bias": true,
  "rms_norm_eps": 1e-5, "initializer_range": 0.2}' --seq 9
make_gemma2 gemma2-wide '{"model_type": "gemma2", "vocab_size": 29, "hidden_size": 14, "intermediate_size": 22,
  "num_hidden_layers": 3, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 4, "query_pre_attn_scalar": 7,
  "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "sliding_window": null, "rope_theta": 500.0,
  "rms_norm_eps": 1e-6, "initializer_range": 1.0}' --seq 7 --batch 3
