#!/usr/bin/python3
"""Training by `ingot bench train` and by PyTorch in its strongest form (peer.py), in turn (A B A B ...), over sizes,
lengths, precisions, recomputation and threads. Writes bench/RESULTS.md.

    bench/results.py                              the default selection: about half an hour on two quiet cores
    bench/results.py --list [--cases GLOB ...]    what would run, and how long it takes
    bench/results.py --cases '124m/*/bf16/*' --rounds 5
    bench/results.py --page-only                  writes the page anew from what was measured
    bench/results.py --quick                      tiny models, to try the script: no figures of any worth

A case is SIZE/BATCHxLENGTH/PRECISION/RECOMPUTATION/THREADSt. fp16 and selective recomputation are ingot's alone; where
something is recomputed, ingot without it runs in the same turns. Each case is kept as a line of JSON (--json) when it is
done: started again, the script goes on with the cases that it lacks for this commit and CPU. A side that fails, does not
fit memory or takes far too long is a row of the page that says so.
"""
import argparse
import dataclasses
import datetime
import fnmatch
import itertools
import json
import os
import shlex
import signal
import statistics
import subprocess
import sys

import peer
import results_page

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
SIZES = {"15m": ("llama-15m", 15.2e6), "124m": ("gpt2-124m", 124.4e6), "350m": ("gpt2-350m", 354.8e6)}
QUICK_SIZES = {"nano": ("gpt2-nano", 2.5e6), "15m": SIZES["15m"]}
SHAPES = [(4, 64), (4, 256), (1, 1024), (4, 1024), (1, 4096), (1, 8192)]
DEFAULT = [
    "124m/4x1024/bf16/none/2t", "124m/1x1024/fp32/none/2t", "124m/4x64/bf16/none/2t",
    "124m/4x1024/bf16/selective/2t", "124m/4x1024/bf16/full/2t",
    "124m/4x64/fp32/none/2t", "124m/1x1024/bf16/none/2t", "124m/1x1024/fp16/none/2t", "124m/1x1024/bf16/none/1t",
    "15m/4x64/fp32/none/2t", "15m/4x64/bf16/none/2t", "15m/4x256/bf16/none/2t", "15m/1x1024/fp32/none/2t",
    "15m/1x1024/bf16/none/2t", "15m/1x4096/bf16/none/2t", "15m/1x8192/bf16/none/2t",
    "350m/1x1024/bf16/none/2t", "350m/4x64/fp32/none/2t",
]
QUICK = ["nano/2x64/fp32/none/2t", "nano/2x64/bf16/none/1t", "nano/2x64/fp32/full/2t", "nano/2x64/fp32/selective/2t",
         "nano/2x64/fp16/none/2t", "nano/1x512/fp32/none/2t",
         "15m/1x64/bf16/none/2t"]
# What --list and the number of steps reckon with: GFLOP/s a thread, and the parts of it that both sides reach.
PEAK = {"fp32": 205, "bf16": 375, "fp16": 205}
INGOT_MFU, TORCH_MFU = 0.7, 0.35
FULL_RECOMPUTE_COST = {"ingot": 1.22, "torch": 1.5}
# A side that is slower than this, GFLOP/s a thread, is given up (PyTorch in bf16 on a CPU without it).
TOO_SLOW = 20
START_SECONDS = 60  # allowed on top, for starting and for steps that are too small to count FLOPs
OTHER_BYTES = 500e6  # of memory that is left to everything else


@dataclasses.dataclass(frozen=True)
class Case:
    size: str
    batch: int
    seq: int
    precision: str
    recompute: str
    threads: int

    @staticmethod
    def parse(name):
        size, shape, precision, recompute, threads = name.split("/")
        batch, seq = map(int, shape.split("x"))
        return Case(size, batch, seq, precision, recompute, int(threads[:-1]))

    @property
    def name(self):
        return f"{self.size}/{self.batch}x{self.seq}/{self.precision}/{self.recompute}/{self.threads}t"

    @property
    def preset(self):
        return (SIZES | QUICK_SIZES)[self.size][0]

    @property
    def tokens(self):
        return self.batch * self.seq

    @property
    def step_flops(self):
        config = peer.MODELS[self.preset]
        layers_width = (config.get("n_layer") or config["num_hidden_layers"]) * (config.get("n_embd") or config["hidden_size"])
        return self.tokens * (6 * (SIZES | QUICK_SIZES)[self.size][1] + 12 * layers_width * self.seq)

    @property
    def has_peer(self):
        return self.precision != "fp16" and self.recompute != "selective"

    def step_seconds(self, side):
        mfu = INGOT_MFU if side == "ingot" else TORCH_MFU
        extra = FULL_RECOMPUTE_COST[side] if self.recompute == "full" else 1
        return self.step_flops * extra / (mfu * PEAK[self.precision] * 1e9 * self.threads)

    @property
    def steps(self):
        """Measured in a round: some four seconds of them."""
        return max(2, min(10, round(4 / self.step_seconds("ingot"))))

    def seconds(self, rounds):
        """How long the case takes, on a machine as the constants above have it."""
        # A run of ingot has two steps of warm-up and one for the breakdown, and measures the peak twice.
        ingot = rounds * (3 + (self.steps + 3) * self.step_seconds("ingot")) * (1 if self.recompute == "none" else 2)
        return ingot + (5 + (2 + rounds * self.steps) * self.step_seconds("torch") if self.has_peer else 0)

    def time_limit(self, steps):
        return START_SECONDS + steps * self.step_flops / (TOO_SLOW * 1e9 * self.threads)

    def config(self):
        """The preset's keys, with positions for the whole length."""
        config = dict(peer.MODELS[self.preset])
        key = "n_positions" if config["model_type"] == "gpt2" else "max_position_embeddings"
        config[key] = max(config[key], self.seq)
        return config

    def model(self):
        """For --model: the preset, or a directory with its configuration for longer sequences."""
        config = self.config()
        if config == peer.MODELS[self.preset]:
            return self.preset
        directory = os.path.join(ROOT, "build", "bench_models", f"{self.preset}-{self.seq}")
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        return os.path.relpath(directory)


class Ingot:
    """A new process each run."""

    def __init__(self, program, case, steps):
        self.case, self.steps = case, steps
        self.command = [program, "bench", "train", "--model", case.model(), "--batch", str(case.batch), "--seq",
                        str(case.seq), "--precision", case.precision, "--recompute", case.recompute, "--threads",
                        str(case.threads), "--steps", str(steps), "--json"]

    def run(self, memory):
        try:
            done = subprocess.run(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                                  timeout=self.case.time_limit(self.steps + 3),
                                  preexec_fn=lambda: peer.limit_memory(memory))
        except subprocess.TimeoutExpired as error:
            raise peer.Failed(f"not done after {error.timeout:.0f} s") from error
        if done.returncode < 0:
            raise peer.Failed(f"ended by {signal.Signals(-done.returncode).name}")
        if done.returncode:
            raise peer.Failed(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"status {done.returncode}")
        result = json.loads(done.stdout)
        result["rss"] = result["peak_rss_bytes"]
        result["flops_per_token"] = result["model_tflops"] * 1e12 / result["tokens_per_second"]
        del result["losses"]
        return result

    def close(self):
        pass


class Torch:
    """One process for all rounds, started when it runs first."""

    def __init__(self, case, steps):
        self.case, self.steps, self.trainer = case, steps, None
        self.job = {**dataclasses.asdict(case), "preset": case.preset, "config": case.config()}

    def run(self, memory):
        if self.trainer is None:
            self.trainer = peer.TorchTrainer(self.job, memory)
            for _ in range(2):  # warm-up, as ingot has
                self.trainer.run(1, self.case.time_limit(1))
        result = self.trainer.run(self.steps, self.case.time_limit(self.steps))
        return {"tokens_per_second": self.case.tokens / statistics.median(result["seconds"]), "rss": result["rss"],
                "flops_per_token": self.trainer.flops_per_token}

    def close(self):
        if self.trainer:
            self.trainer.close()


def measure(case, program, rounds, steps, available):
    """{rounds: [{side: figures}], failures: {side: why}}. The sides: ingot; none, ingot without recomputation; torch."""
    sides = {"ingot": Ingot(program, case, steps)}
    if case.recompute != "none":
        sides["none"] = Ingot(program, dataclasses.replace(case, recompute="none"), steps)
    if case.has_peer:
        sides["torch"] = Torch(case, steps)
    result = {"rounds": [], "failures": {}}
    resident = {}  # PyTorch stays while ingot runs: each side gets what the largest of the others leaves
    try:
        for _ in range(rounds):
            figures = {}
            for name, side in sides.items():
                if name in result["failures"]:
                    continue
                others = max((rss for other, rss in resident.items() if other != name), default=0)
                try:
                    figures[name] = side.run(int(available - others - OTHER_BYTES))
                    resident[name] = figures[name]["rss"]
                    check_same_model(figures)
                except peer.Failed as error:
                    result["failures"][name] = str(error)
                    figures.pop(name, None)
            if not figures:
                break
            result["rounds"].append(figures)
            print("  " + ", ".join(f"{name} {one['tokens_per_second']:.0f}" for name, one in figures.items()) + " tokens/s",
                  file=sys.stderr, flush=True)
    finally:
        for side in sides.values():
            side.close()
    return result


def check_same_model(figures):
    """Equal FLOPs a token: the same parameters, layers and width."""
    if "ingot" not in figures or "torch" not in figures:
        return
    ours, theirs = (figures[side]["flops_per_token"] for side in ("ingot", "torch"))
    if abs(ours / theirs - 1) > 1e-6:
        raise peer.Failed(f"another model: {theirs:.0f} FLOPs a token, ingot {ours:.0f}")


def machine(program):
    """Of `ingot check`; its status does not matter here."""
    report = json.loads(subprocess.run([program, "check", "--json"], stdout=subprocess.PIPE, check=False, text=True).stdout)
    keys = ("cpu", "isa", "bf16_instructions", "peak_gflops", "memory_gbytes_per_s", "available_memory")
    return {**{key: report[key] for key in keys}, "cores": len(os.sched_getaffinity(0))}


def commit():
    """The last one that changed the program, and whether the tree differs from it."""
    sources = ["--", "src", "cli", "cmake", "CMakeLists.txt", "CMakePresets.json"]
    def git(*words):
        return subprocess.run(["git", "-C", ROOT, *words, *sources], stdout=subprocess.PIPE, check=False,
                              stderr=subprocess.DEVNULL, text=True).stdout.strip()
    return (git("log", "-1", "--format=%h") or "unknown") + ("-dirty" if git("status", "--porcelain", "-uno") else "")


def select(arguments):
    sizes = QUICK_SIZES if arguments.quick else SIZES
    default = QUICK if arguments.quick else DEFAULT
    grid = [Case(*one[:1], *one[1], *one[2:]) for one in itertools.product(
        sizes, SHAPES, ("fp32", "bf16", "fp16"), ("none", "selective", "full"), (1, 2))]
    # The default ones first and in their order: the most wanted figures are there when a run is interrupted.
    cases = list(dict.fromkeys([Case.parse(name) for name in default] + grid))
    globs = arguments.cases or default
    unknown = [glob for glob in globs if not any(fnmatch.fnmatch(case.name, glob) for case in cases)]
    if unknown:
        sys.exit(f"no case is named {unknown[0]}; a case is SIZE/BATCHxLENGTH/PRECISION/RECOMPUTATION/THREADSt of "
                 f"sizes {', '.join(sizes)}, such as {default[0]}; --list --cases '*' shows all")
    return [case for case in cases if any(fnmatch.fnmatch(case.name, glob) for glob in globs)]


def read_records(path):
    """By case, the newest last; a line that an interruption cut off counts as absent."""
    records = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                try:
                    records.append(json.loads(line))
                except json.JSONDecodeError:
                    print(f"{path}: a line is cut off and left out", file=sys.stderr)
    return records


def append_record(path, record):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "a+", encoding="utf-8") as file:
        file.seek(0)
        cut_off = file.read()[-1:] not in ("", "\n")
        file.write("\n" * cut_off + json.dumps(record) + "\n")


def print_list(cases, rounds):
    for case in cases:
        print(f"{case.name:34} {rounds} x {case.steps:2} steps {case.seconds(rounds) / 60:5.1f} min"
              f"{'' if case.has_peer else '   ingot alone'}")
    print(f"{len(cases)} cases, about {sum(case.seconds(rounds) for case in cases) / 60:.0f} min at the speeds of two Zen 5 cores")


def run_cases(cases, arguments):
    here, revision = machine(arguments.ingot), commit()
    done = {r["case"]["name"] for r in read_records(arguments.json)
            if (r["commit"], r["machine"]["cpu"]) == (revision, here["cpu"])}
    command = shlex.join(["bench/results.py", *(["--quick"] if arguments.quick else []),
                          *(["--cases", *arguments.cases] if arguments.cases else []), "--rounds", str(arguments.rounds)])
    for number, case in enumerate(cases, 1):
        print(f"{number}/{len(cases)} {case.name}{' is there' if case.name in done and not arguments.again else ''}", file=sys.stderr, flush=True)
        if case.name in done and not arguments.again:
            continue
        steps = 1 if arguments.quick else case.steps
        result = measure(case, arguments.ingot, arguments.rounds, steps, here["available_memory"])
        append_record(arguments.json, {
            "case": {**dataclasses.asdict(case), "name": case.name, "preset": case.preset}, "steps": steps,
            "command": command, "commit": revision, "date": datetime.date.today().isoformat(), "machine": here, **result})
        write_page(arguments)


def write_page(arguments):
    records = {record["case"]["name"]: record for record in read_records(arguments.json)}
    page = results_page.page(list(records.values()))
    with open(arguments.out + ".new", "w", encoding="utf-8") as file:
        file.write(page)
    os.replace(arguments.out + ".new", arguments.out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ingot", default=os.path.join(ROOT, "build", "ingot"))
    parser.add_argument("--cases", nargs="+", metavar="GLOB", help="names of cases, with * and ?")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--again", action="store_true", help="measure what is there already, too")
    parser.add_argument("--rounds", type=int, help="runs of each side, in turn (3)")
    parser.add_argument("--json", metavar="FILE", help="what was measured (build/bench_results.jsonl)")
    parser.add_argument("--out", metavar="FILE", help="the page (bench/RESULTS.md)")
    parser.add_argument("--page-only", action="store_true")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    quick = arguments.quick
    arguments.rounds = arguments.rounds or (2 if quick else 3)
    arguments.json = arguments.json or os.path.join(ROOT, "build", f"bench_results{'_quick' if quick else ''}.jsonl")
    arguments.out = arguments.out or os.path.join(ROOT, *(["build", "RESULTS_quick.md"] if quick else ["bench", "RESULTS.md"]))
    cases = select(arguments)
    if arguments.list:
        return print_list(cases, arguments.rounds)
    if not arguments.page_only:
        run_cases(cases, arguments)
    elif not read_records(arguments.json):
        sys.exit(f"{arguments.json} holds no results")
    write_page(arguments)


if __name__ == "__main__":
    main()
