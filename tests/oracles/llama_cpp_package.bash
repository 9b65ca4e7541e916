# llama.cpp, as node-llama-cpp of npm has it, for the oracle and the comparison of speed: sourced, with `oracle` (its name)
# and `root` (the project) set. Sets `packages`, the directory in which node_modules lies; `install_llama_cpp` fills it.
packages=$root/build/oracles/gguf
llama_cpp_version=3.22.1
needs="node-llama-cpp@$llama_cpp_version with @node-llama-cpp/linux-x64@$llama_cpp_version"
source "$(dirname "${BASH_SOURCE[0]}")/npm.bash"

install_llama_cpp() {
  local program
  [ -x "$root/build/ingot" ] || unavailable "build/ingot is not built"
  for program in sequence_logits random_model; do
    [ -x "$root/build/tests/oracles/$program" ] || unavailable "build/tests/oracles/$program is not built (cmake -DINGOT_TESTS=ON)"
  done
  npm_packages "$packages" @node-llama-cpp/linux-x64 "$llama_cpp_version" \
    "node-llama-cpp@$llama_cpp_version" "@node-llama-cpp/linux-x64@$llama_cpp_version"
}
