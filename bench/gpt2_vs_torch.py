#!/usr/bin/python3
"""GPT-2 training steps by `ingot bench train` and by PyTorch, in turn on the same machine (A B A B ...).

PyTorch runs in its strongest form: an allocator that never gives memory back (jemalloc), the BLAS kernels of the widest
vectors, the model in plain torch without a framework around it, AdamW, clipping at 1.0. It lives in one process that
waits while ingot runs. What counts is the median of the rounds' ratios.

    bench/gpt2_vs_torch.py --rounds 5 --steps 5
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

import peer

# layers, heads, width, positions of presets that both sides know.
PRESETS = {"gpt2-124m": (12, 12, 768, 1024), "gpt2-small": (6, 6, 384, 1024), "gpt2-mini": (6, 6, 192, 1024)}
VOCABULARY = 50257
# PyTorch's best seen figure for gpt2-124m at 1 x 1024 in fp32, tokens/s per GFLOP/s of measured peak. A comparison
# counts only where PyTorch reaches most of it.
REFERENCE_TOKENS_PER_GFLOPS = 179 / 410
ENOUGH = 0.8


def torch_worker(arguments):
    """Trains on request: each line on stdin is a number of steps, answered by the seconds of each, as JSON."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    layers, heads, width, positions = PRESETS[arguments.model]

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.gelu = nn.GELU(approximate="tanh")

        def forward(self, x, mask):
            b, t, c = x.shape
            q, k, v = (y.view(b, t, heads, c // heads).transpose(1, 2) for y in self.qkv(self.ln_1(x)).split(c, dim=2))
            scores = (q @ k.transpose(2, 3)) * (c // heads) ** -0.5
            weights = torch.softmax(scores.masked_fill(mask[:t, :t], float("-inf")), dim=-1)
            x = x + self.out((weights @ v).transpose(1, 2).reshape(b, t, c))
            return x + self.down(self.gelu(self.up(self.ln_2(x))))

    class Gpt2(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(VOCABULARY, width), nn.Embedding(positions, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.ln_f = nn.LayerNorm(width)
            self.register_buffer("mask", torch.ones(positions, positions, dtype=torch.bool).triu(1))
            for parameter in self.parameters():
                if parameter.dim() > 1:
                    nn.init.normal_(parameter, std=0.02)

        def forward(self, ids, targets):
            x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
            for block in self.blocks:
                x = block(x, self.mask)
            logits = self.ln_f(x) @ self.tokens.weight.t()
            return F.cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1))

    model = Gpt2()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1)

    def step():
        ids = torch.randint(VOCABULARY, (arguments.batch, arguments.seq + 1))
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = model(ids[:, :-1], ids[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
        return time.perf_counter() - start

    print(json.dumps({"parameters": sum(p.numel() for p in model.parameters())}), flush=True)
    for line in sys.stdin:
        seconds = [step() for _ in range(int(line))]
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"seconds": seconds, "rss": rss}), flush=True)


class Torch:
    def __init__(self, arguments):
        command = [sys.executable, os.path.abspath(__file__), "--worker", "--model", arguments.model, "--batch",
                   str(arguments.batch), "--seq", str(arguments.seq), "--threads", str(arguments.threads)]
        self.process = subprocess.Popen(command, env=peer.environment(OMP_NUM_THREADS=str(arguments.threads)),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.parameters = self.answer()["parameters"]

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"PyTorch's process ended with status {self.process.wait()}")
        return json.loads(line)

    def run(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def run_ingot(arguments):
    command = [arguments.ingot, "bench", "train", "--model", arguments.model, "--batch", str(arguments.batch), "--seq",
               str(arguments.seq), "--precision", "fp32", "--steps", str(arguments.steps), "--threads",
               str(arguments.threads), "--json"]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)


def compare(arguments):
    """One line a round on stderr; returns what the table needs."""
    torch = Torch(arguments)
    torch.run(2)  # warm-up, as ingot has
    tokens = arguments.batch * arguments.seq
    rounds = []
    for number in range(arguments.rounds):
        ours = run_ingot(arguments)
        theirs = torch.run(arguments.steps)
        speed = tokens / statistics.median(theirs["seconds"])
        rounds.append({"ingot": ours["tokens_per_second"], "torch": speed, "ratio": ours["tokens_per_second"] / speed,
                       "peak_gflops": ours["peak_gflops"], "ingot_mfu": ours["mfu"], "ingot_rss": ours["peak_rss_bytes"],
                       "planned": ours["planned_bytes"], "torch_rss": theirs["rss"]})
        print("round {}: ingot {:.0f}, torch {:.0f} tokens/s, ratio {:.2f}".format(
            number + 1, rounds[-1]["ingot"], rounds[-1]["torch"], rounds[-1]["ratio"]), file=sys.stderr)
    torch.close()
    result = {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}
    layers, _, width, _ = PRESETS[arguments.model]
    flops_a_token = 6 * torch.parameters + 12 * layers * width * arguments.seq
    result["torch_mfu"] = flops_a_token * result["torch"] / (result["peak_gflops"] * 1e9)
    result["rounds"] = rounds
    # Only for the shape that the reference figure was taken at.
    if arguments.model == "gpt2-124m" and (arguments.batch, arguments.seq) == (1, 1024):
        result["torch_of_its_best"] = result["torch"] / (REFERENCE_TOKENS_PER_GFLOPS * result["peak_gflops"])
    return result


def print_table(arguments, result):
    print(f"{arguments.model}, batch {arguments.batch} x {arguments.seq}, fp32, {arguments.threads} threads; medians of "
          f"{arguments.rounds} rounds of {arguments.steps} steps in turn; peak {result['peak_gflops']:.0f} GFLOP/s\n")
    print("|       | tokens/s | MFU  | peak RSS MB | planned MB |")
    print("|-------|---------:|-----:|------------:|-----------:|")
    print(f"| ingot | {result['ingot']:8.0f} | {result['ingot_mfu']:.2f} | {result['ingot_rss'] / 1e6:11.0f} | "
          f"{result['planned'] / 1e6:10.0f} |")
    print(f"| torch | {result['torch']:8.0f} | {result['torch_mfu']:.2f} | {result['torch_rss'] / 1e6:11.0f} |            |")
    print(f"\nratio ingot / torch: {result['ratio']:.2f} (median of the rounds' ratios)")
    if "torch_of_its_best" in result:
        share = result["torch_of_its_best"]
        print(f"torch is at {100 * share:.0f}% of its best figure scaled by this peak: the comparison "
              f"{'counts' if share >= ENOUGH else 'does not count, the machine is disturbed or PyTorch is not at its best'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ingot", default=os.path.join(os.path.dirname(__file__), "..", "build", "ingot"))
    parser.add_argument("--model", choices=sorted(PRESETS), default="gpt2-124m")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seq", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=5, help="measured steps a round and side")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print one JSON object in place of the table")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return torch_worker(arguments)
    result = compare(arguments)
    if arguments.json:
        print(json.dumps(result))
    else:
        print_table(arguments, result)


if __name__ == "__main__":
    main()
