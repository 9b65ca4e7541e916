#!/usr/bin/env bash
# Runs a program again and again, each time with a fault at another moment, and compares what it leaves in the end with what
# an undisturbed run leaves. In COMMAND and COMPARE, {out} stands for the output directory and {ref} for that of the
# undisturbed run.
#
#   kill_everywhere.sh [options] -- COMMAND...
#     --work DIR        where the runs' directories are made; it is removed where all went well
#     --lib FILE        the preload library (kill_at.so); not needed with --random
#     --mode MODE       kill (default), partial, enospc, eio: see kill_at.c. After a fault the program is run again undisturbed
#     --kind KINDS      faults only at calls of these kinds, by commas
#     --times N         for enospc and eio: how many calls fail; 0: all from the first on
#     --twice           the second run of each is disturbed at the same number too, the third is not
#     --first N --last N --every N    which calls: by default all
#     --random K        instead: kill the program K times after random times, each run going on where the last was killed
#     --seed S          of those times (1)
#     --setup COMMAND   run before each first run, when {out} is new
#     --compare COMMAND says by its exit status whether the outcome is right (default: diff -r {ref} {out})
#     --after COMMAND   run after the disturbed run of enospc and eio, before the second: must succeed
set -u -o pipefail

work= lib= mode=kill kind= times=1 twice=0 first=1 last= every=1 random=0 seed=1 setup= after=
compare='diff -r {ref} {out}'
die() { echo "error: $*" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
    --work) work=$2; shift 2 ;;
    --lib) lib=$2; shift 2 ;;
    --mode) mode=$2; shift 2 ;;
    --kind) kind=$2; shift 2 ;;
    --times) times=$2; shift 2 ;;
    --twice) twice=1; shift ;;
    --first) first=$2; shift 2 ;;
    --last) last=$2; shift 2 ;;
    --every) every=$2; shift 2 ;;
    --random) random=$2; shift 2 ;;
    --seed) seed=$2; shift 2 ;;
    --setup) setup=$2; shift 2 ;;
    --compare) compare=$2; shift 2 ;;
    --after) after=$2; shift 2 ;;
    --) shift; break ;;
    *) die "unknown option $1" ;;
  esac
done
[ $# -gt 0 ] || die "no command given"
[ -n "$work" ] || die "--work is missing"
mkdir -p "$work" && work=$(realpath "$work") || die "cannot make $work"
[ "$random" -gt 0 ] || [ -f "$lib" ] || die "--lib names no file: '$lib'"
[ -z "$lib" ] || lib=$(realpath "$lib")

ref=$work/reference out=$work/run log=$work/log
command=("$@")
with_paths() { local text=${1//\{out\}/$out}; printf '%s' "${text//\{ref\}/$ref}"; }

# Runs the command with its output in directory $1, further arguments being settings of the environment.
run_in() {
  local directory=$1 part; shift
  local words=()
  for part in "${command[@]}"; do words+=("${part//\{out\}/$directory}"); done
  # The shell would report each death; what the run itself says goes to the log.
  { env "$@" "${words[@]}" >>"$log" 2>&1 & wait $!; } 2>/dev/null
}
fresh() {
  rm -rf "$out" && mkdir -p "$out" && : >"$log"
  [ -z "$setup" ] || bash -c "$(with_paths "$setup")" >>"$log" 2>&1 || die "the setup failed; see $log"
}
fail() {
  echo "FAILED: $*" >&2
  sed 's/^/  | /' "$log" | tail -20 >&2
  echo "  what it left is in $out, what it should be in $ref" >&2
  exit 1
}
check_outcome() { bash -c "$(with_paths "$compare")" >>"$log" 2>&1 || fail "$1: the outcome differs"; }

rm -rf "$ref" && mkdir -p "$ref" && : >"$log"
if [ -n "$setup" ]; then
  (out=$ref; bash -c "$(with_paths "$setup")") >>"$log" 2>&1 || die "the setup failed; see $log"
fi
begin=$(date +%s%N)
if [ "$random" -gt 0 ]; then
  run_in "$ref" || fail "the undisturbed run failed"
else
  run_in "$ref" LD_PRELOAD="$lib" INGOT_FAULT_PREFIX="$ref" INGOT_FAULT_KIND="$kind" INGOT_FAULT_COUNT="$work/count" ||
    fail "the undisturbed run failed"
fi
milliseconds=$((($(date +%s%N) - begin) / 1000000 + 1))

if [ "$random" -gt 0 ]; then
  RANDOM=$seed
  fresh
  words=()
  for part in "${command[@]}"; do words+=("${part//\{out\}/$out}"); done
  killed=0 ended=0
  longest=$((2 * milliseconds / random + 2)) # the kills together take about as long as the run
  while [ $killed -lt "$random" ]; do
    { "${words[@]}" >>"$log" 2>&1 & } 2>/dev/null
    pid=$!
    delay=$(((RANDOM * 32768 + RANDOM) % longest))
    # Ends early where the program does.
    timeout "$(printf '%d.%03d' $((delay / 1000)) $((delay % 1000)))" tail --pid=$pid -s 0.01 -f /dev/null
    kill -KILL $pid 2>/dev/null
    { wait $pid; } 2>/dev/null
    status=$?
    if [ $status -eq 137 ]; then
      killed=$((killed + 1))
      continue
    fi
    [ $status -eq 0 ] || fail "after $killed kills: the run ended with $status"
    check_outcome "after $killed kills"
    ended=$((ended + 1))
    [ $ended -le $((20 * random)) ] || fail "the program ends before it can be killed; give it more to do"
    fresh
  done
  run_in "$out" || fail "the run after $killed kills failed"
  check_outcome "after $killed kills"
  rm -rf "$work"
  echo "ok: killed $killed times at random moments, in $((ended + 1)) runs whose outcomes are that of an undisturbed run"
  exit 0
fi

total=$(cat "$work/count") || die "the undisturbed run left no count"
[ "$total" -gt 0 ] || die "the undisturbed run made no call that counts; are its files in {out}?"
[ -n "$last" ] || last=$total
disturb() { # NUMBER: one disturbed run; its exit status
  run_in "$out" LD_PRELOAD="$lib" INGOT_FAULT_PREFIX="$out" INGOT_FAULT_AT="$1" INGOT_FAULT_MODE="$mode" \
    INGOT_FAULT_TIMES="$times" INGOT_FAULT_KIND="$kind"
}
tried=0
for ((n = first; n <= last; n += every)); do
  fresh
  disturb "$n"
  status=$?
  case $mode in
    kill | partial)
      # The number of calls may differ by a few from run to run where threads race; near the end there may be no N-th.
      [ $status -eq 137 ] || { [ $status -eq 0 ] && [ "$n" -gt $((total * 9 / 10)) ]; } ||
        fail "call $n: the run ended with $status instead of being killed"
      ;;
    *)
      [ $status -lt 128 ] || fail "call $n: the run was ended by a signal ($status)"
      if [ -n "$after" ]; then bash -c "$(with_paths "$after")" >>"$log" 2>&1 || fail "call $n: '$after' failed"; fi
      ;;
  esac
  [ $twice -eq 0 ] || disturb "$n"
  run_in "$out" || fail "call $n: the run after the fault failed"
  check_outcome "call $n"
  tried=$((tried + 1))
done
rm -rf "$work"
echo "ok: $mode at $tried of $total calls, each outcome is that of an undisturbed run"
