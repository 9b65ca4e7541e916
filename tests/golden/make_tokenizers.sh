#!/usr/bin/env bash
# Makes tests/golden/tokenizers anew: small tokenizers of SentencePiece's trainer and of a BERT vocabulary, and the ids and texts
# that SentencePiece's tools and the native Hugging Face tokenizer give for them and, over tokenizers/texts.jsonl, for those and the
# vocabularies of the data beside the project. Needs what tests/oracles/tokenizers.sh needs.
set -euo pipefail
cd "$(dirname "$0")"
out=$PWD/tokenizers
oracle=tokenizers
source ../oracles/tokenizer_packages.bash
install_tokenizers
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
zcat /usr/share/info/python3.11.info.gz | head -c 60000 > "$work/text" || true
cat /usr/share/libreoffice/help/zh-CN/text/scalc/01/0406010[1-4].html | sed 's/<[^>]*>/ /g' | head -c 60000 >> "$work/text" || true
# A ligature, a composition, wide spaces and letters, a composition of Hangul.
printf 'FB01\t66 69\n65 301\tE9\n3000\t20\n9\t20\nFF21\t41\n1112 1161 11AB\tD55C\n' > "$work/rules.tsv"
train() { spm_train --input="$work/text" --num_threads=1 --hard_vocab_limit=false --minloglevel=2 --byte_fallback --user_defined_symbols='<tool>' \
  --character_coverage=0.98 "$@" 2> "$work/log" || { cat "$work/log" >&2; exit 1; }; }
train --model_prefix="$work/unigram" --model_type=unigram --vocab_size=800 --normalization_rule_tsv="$work/rules.tsv"
train --model_prefix="$work/bpe" --model_type=bpe --vocab_size=800 --normalization_rule_name=identity --remove_extra_whitespaces=false \
  --split_digits --allow_whitespace_only_pieces
mkdir -p "$out"
cp "$work"/{unigram,bpe}.model "$out"
node ../oracles/tokenizers.js golden "$packages" "$out"
node ../oracles/tokenizers.js store "$packages" "$out"
