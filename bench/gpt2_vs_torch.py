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
import statistics
import subprocess
import sys

import peer

MODELS = sorted(name for name in peer.MODELS if name.startswith("gpt2-"))


def run_ingot(arguments):
    command = [arguments.ingot, "bench", "train", "--model", arguments.model, "--batch", str(arguments.batch), "--seq",
               str(arguments.seq), "--precision", "fp32", "--steps", str(arguments.steps), "--threads",
               str(arguments.threads), "--json"]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)


def compare(arguments):
    """One line a round on stderr; returns what the table needs."""
    job = {"preset": arguments.model, "config": peer.MODELS[arguments.model], "batch": arguments.batch,
           "seq": arguments.seq, "precision": "fp32", "recompute": "none", "threads": arguments.threads}
    torch = peer.TorchTrainer(job)
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
    result["torch_mfu"] = torch.flops_per_token * result["torch"] / (result["peak_gflops"] * 1e9)
    result["rounds"] = rounds
    result["torch_of_its_best"] = peer.share_of_best(job, result["torch"], result["peak_gflops"])
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
    share = result["torch_of_its_best"]
    if share is not None:
        print(f"torch is at {100 * share:.0f}% of its best figure scaled by this peak: the comparison "
              f"{'counts' if share >= peer.ENOUGH else 'does not count, the machine is disturbed or PyTorch is not at its best'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ingot", default=os.path.join(os.path.dirname(__file__), "..", "build", "ingot"))
    parser.add_argument("--model", choices=MODELS, default="gpt2-124m")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seq", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=5, help="measured steps a round and side")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print one JSON object in place of the table")
    arguments = parser.parse_args()
    try:
        result = compare(arguments)
    except peer.Failed as error:
        sys.exit(f"PyTorch: {error}")
    if arguments.json:
        print(json.dumps(result))
    else:
        print_table(arguments, result)


if __name__ == "__main__":
    main()
