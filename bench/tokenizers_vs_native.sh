#!/usr/bin/env bash
# Encoding speed on one thread beside the native Hugging Face tokenizer, in turn. See tokenizers_vs_native.mjs.
#   bench/tokenizers_vs_native.sh [--ingot build/ingot] [--rounds 5] [--megabytes 4] [TOKENIZER.json …]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
oracle="tokenizer speed"
source "$here/../tests/oracles/tokenizer_packages.bash"
install_tokenizers
# The peer's own threads: it would cut batches among them.
RAYON_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false exec node "$here/tokenizers_vs_native.mjs" "$packages" "$@"
