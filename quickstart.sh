#!/usr/bin/env bash
# From nothing to a trained language model: packages, a release build, a tokenizer, a Llama of about 10M parameters, three
# continuations.
#   ./quickstart.sh [--build-only] [--text FILE…] [--minutes N] [--out DIR]
# --build-only: packages and build, no training. --text: your own text files in place of the Python manual.
# --minutes: about how long to train (default 3). --out: where everything goes (default runs/quickstart).
set -euo pipefail
cd "$(dirname "$0")"

build_only=false
minutes=3
out=runs/quickstart
texts=()
while [ $# -gt 0 ]; do
  case $1 in
    --build-only) build_only=true ;;
    --minutes) minutes=${2:-}; shift $(($# > 1)) ;;
    --out)
      out=${2:-}; shift $(($# > 1))
      [ -n "$out" ] || { echo "quickstart.sh: --out needs a directory" >&2; exit 2; } ;;
    --text)
      while [ $# -gt 1 ] && [[ $2 != --* ]]; do texts+=("$2"); shift; done
      [ ${#texts[@]} -gt 0 ] || { echo "quickstart.sh: --text needs at least one file" >&2; exit 2; } ;;
    -h|--help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "quickstart.sh: unknown option $1 (see --help)" >&2; exit 2 ;;
  esac
  shift
done
[[ $minutes =~ ^[0-9]+(\.[0-9]+)?$ ]] || { echo "quickstart.sh: --minutes needs a number, found \"$minutes\"" >&2; exit 2; }
for text in ${texts[@]+"${texts[@]}"}; do
  [ -r "$text" ] || { echo "quickstart.sh: cannot read $text" >&2; exit 3; }
done

sections=(build)
$build_only || [ ${#texts[@]} -gt 0 ] || sections+=(text)
scripts/install_packages.sh "${sections[@]}"

cmake --preset release -DINGOT_BENCHMARKS=OFF -DINGOT_TESTS=OFF > build.log 2>&1 || { cat build.log >&2; exit 1; }
echo "building (the first time takes some minutes, on a busy machine up to twenty; all of it is in build.log) …" >&2
# A line for each tenth of the build's steps, which ninja numbers: [n/of].
show_tenths() {
  local shown=0 n of
  while IFS='[/] ' read -r _ n of _; do
    [[ $n =~ ^[0-9]+$ && $of =~ ^[0-9]+$ ]] && ((10 * n / of > shown)) || continue
    shown=$((10 * n / of))
    echo "  $n of $of steps"
  done
}
cmake --build build --target ingot 2>&1 | tee -a build.log | show_tenths >&2 || { tail -40 build.log >&2; exit 1; }
rm -f build.log
$build_only && { echo "built build/ingot" >&2; exit 0; }

mkdir -p "$out"
if [ ${#texts[@]} -eq 0 ]; then
  manual=/usr/share/info/python3.11.info.gz
  if [ ! -r $manual ]; then  # an image that leaves documentation out had the package already
    (cd "$out" && apt-get download -qq python3.11-doc && dpkg-deb --fsys-tarfile python3.11-doc_*.deb | tar -xO ./usr/share/info/python3.11.info.gz > manual.gz && rm -f python3.11-doc_*.deb)
    manual=$out/manual.gz
  fi
  [ -f "$out/text/python3.11.txt" ] || { mkdir -p "$out/text" && zcat "$manual" > "$out/text/part" && mv "$out/text/part" "$out/text/python3.11.txt"; }
  texts=("$out/text/python3.11.txt")
fi

# The run goes on where it was, which other text would not allow.
if ! printf '%s\n' "${texts[@]}" | cmp -s - "$out/texts" && [ -e "$out/texts" ]; then
  echo "quickstart.sh: $out holds a run on other text: choose another directory with --out, or remove it" >&2
  exit 2
fi
printf '%s\n' "${texts[@]}" > "$out/texts"

ingot=build/ingot
config=$out/config.yaml
{
  echo "output_dir: $out/run"
  echo "model: {preset: llama-10m, config: {max_position_embeddings: 256}}"
  echo "tokenizer: {path: $out/tokenizer.json, train_vocab_size: 4096}"
  echo "data:"
  echo "  train:"
  for text in "${texts[@]}"; do printf "    - {path: '%s'}\n" "${text//\'/\'\'}"; done
  echo "  validation_fraction: 0.02"
  echo "  sequence_length: 256"
  # In a few minutes many small steps teach more than few large ones.
  echo "training: {steps: 1000, global_batch_size: 1}"
  echo "optimizer: {learning_rate: 1.5e-3, betas: [0.9, 0.99]}"
  echo "schedule: {warmup_ratio: 0.03}"
  echo "checkpoint: {every_minutes: 1, every_steps: 0, keep: 2}"
  echo "evaluation: {every_steps: 500, max_batches: 40}"
  echo "logging: {every_steps: 50}"
} > "$config"

# How many steps the machine makes in the time asked for: a few, measured once.
if [ ! -f "$out/step_seconds" ]; then
  echo "measuring the speed of this machine …" >&2
  $ingot train "$config" output_dir="$out/probe" training.steps=100 evaluation.every_steps=0 checkpoint.every_minutes=null checkpoint.resume=never logging.tensorboard=false --json > "$out/probe.json" 2> "$out/probe.log" || { tail -5 "$out/probe.log" >&2; exit 1; }
  sed -n 's/.*"train_seconds":\([0-9.e+-]*\).*/\1/p' "$out/probe.json" | awk '{ print $1 / 100 }' > "$out/step_seconds"
  rm -rf "$out/probe" "$out/probe.json" "$out/probe.log"
fi
steps=$(awk -v minutes="$minutes" '{ n = int(minutes * 60 / $1); print (n < 200 ? 200 : n) }' "$out/step_seconds")

$ingot plan "$config" training.steps="$steps"
$ingot train "$config" training.steps="$steps"

echo
echo "Three continuations:"
if [[ ${texts[0]} == "$out"/text/* ]]; then
  prompts=("The function returns" "class " "To create a new list,")
else
  prompts=("" "" "")
fi
seed=1
for prompt in "${prompts[@]}"; do
  echo "--- ${prompt:-(from nothing)}"
  printf '%s' "$prompt"
  $ingot generate "$out/run/model" --prompt "$prompt" --max-tokens 80 --temperature 0.6 --top-p 0.9 --seed $seed
  echo
  seed=$((seed + 1))
done
echo "model:       $out/run/model"
echo "curves:      $out/run/metrics.csv, $out/run/evaluation.csv, $out/run/tensorboard"
echo "checkpoints: $out/run/checkpoints (run this script again after a crash: it goes on from the newest)"
