#!/usr/bin/env bash
# Installs a build into a folder of its own, builds the example program against it with find_package(Ingot), and runs it.
#   run.sh BUILD_DIR WORK_DIR
set -euo pipefail
build=$1
work=$2
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$work/prefix" > "$work/install.log"
cmake -S "$here/example" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/prefix" > "$work/configure.log"
cmake --build "$work/build" > "$work/build.log" || { cat "$work/build.log"; exit 1; }
for i in $(seq 400); do echo "The quick brown fox $i jumps over the lazy dog, and the dog sleeps on."; done > "$work/text.txt"
"$work/build/example" "$work/text.txt" "$work/run"
"$work/prefix/bin/ingot" --version
rm -rf "$work"
