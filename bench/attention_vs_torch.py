#!/usr/bin/python3
"""Causal attention, forward and forward with backward, fp32: Ingot's kernels beside PyTorch's plain form, in turn.

    bench/attention_vs_torch.py [--kernels-bench build/src/kernels/kernels_bench] [--threads 2] [--rounds 5]

PyTorch computes softmax(q k^T / sqrt(d) + causal mask) v, with an allocator that keeps its memory (jemalloc), so that
page faults are not counted against it. Prints one JSON object: milliseconds (the best of all rounds),
the median of the rounds' ratios, and each side's memory beyond inputs and outputs. torch_matmul_gflops is PyTorch's own
product of two 1024 x 1024 matrices: where it is far from the machine's peak, PyTorch has a slow BLAS (Debian: install
libopenblas0-pthread) or the machine is busy, and the comparison says little.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time

import peer

BATCH, TOKENS, HEADS, DIM = 1, 1024, 12, 64


def in_strongest_form():
    """Starts this script again in the environment where PyTorch is fastest."""
    if "INGOT_BENCH_CHILD" not in os.environ:
        os.execve(sys.executable, [sys.executable, *sys.argv], peer.environment(INGOT_BENCH_CHILD="1"))


def resident_bytes(key):
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith(key):
                return int(line.split()[1]) * 1024
    return 0


class Torch:
    def __init__(self, threads):
        import torch

        self.torch = torch
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        shape = (BATCH, HEADS, TOKENS, DIM)
        self.q, self.k, self.v = (torch.randn(shape, requires_grad=True) for _ in range(3))
        self.grad = torch.randn(shape)
        self.mask = torch.full((TOKENS, TOKENS), float("-inf")).triu(1)

    def attention(self):
        scores = self.q @ self.k.transpose(-2, -1) / math.sqrt(DIM) + self.mask
        return scores.softmax(-1) @ self.v

    def step(self, backward):
        if not backward:
            with self.torch.no_grad():
                return self.attention()
        out = self.attention()
        return self.torch.autograd.grad(out, (self.q, self.k, self.v), self.grad)

    def milliseconds(self, backward, repetitions=5):
        times = []
        for _ in range(repetitions):
            start = time.perf_counter()
            self.step(backward)
            times.append(1e3 * (time.perf_counter() - start))
        return min(times)

    def matmul_gflops(self):
        x = self.torch.ones(1024, 1024)
        times = []
        for _ in range(20):
            start = time.perf_counter()
            x @ x
            times.append(time.perf_counter() - start)
        return 2e-9 * 1024**3 / min(times)

    def extra_megabytes(self, backward):
        """Growth of the peak by one call, less the results that it returns."""
        before = resident_bytes("VmRSS")
        results = self.step(backward)
        grown = resident_bytes("VmHWM") - before
        kept = sum(r.numel() * 4 for r in (results if backward else [results]))
        return (grown - kept) / 1e6


def ingot(binary, threads, name):
    """(milliseconds, extra megabytes) of one benchmark of kernels_bench."""
    command = [binary, f"--benchmark_filter=^attention/{name}/{BATCH}/{TOKENS}/{HEADS}/{HEADS}/{DIM}/",
               "--benchmark_format=json", "--benchmark_min_time=0.2"]
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "MALLOC_CONF")}
    environment["OMP_NUM_THREADS"] = str(threads)
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    result = json.loads(run.stdout)["benchmarks"][0]
    return result["real_time"], result["extra_MB"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels-bench", default="build/src/kernels/kernels_bench")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    in_strongest_form()

    torch = Torch(args.threads)
    report = {"shape": [BATCH, TOKENS, HEADS, DIM], "threads": args.threads, "rounds": args.rounds,
              "torch_matmul_gflops": torch.matmul_gflops()}
    for name, backward in (("forward", False), ("both", True)):
        extra = torch.extra_megabytes(backward)
        torch.milliseconds(backward)
        pairs = []
        for _ in range(args.rounds):
            theirs = torch.milliseconds(backward)
            ours, ours_extra = ingot(args.kernels_bench, args.threads, name)
            pairs.append((theirs, ours))
        report[name] = {
            "torch_ms": min(p[0] for p in pairs),
            "ingot_ms": min(p[1] for p in pairs),
            "times_faster": statistics.median(p[0] / p[1] for p in pairs),
            "torch_extra_MB": extra,
            "ingot_extra_MB": ours_extra,
        }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
