"""PyTorch as a peer: its strongest form (an allocator that keeps its memory, the widest BLAS kernels), training steps in a
process of its own, and what it is known to reach."""
import glob
import json
import os
import resource
import select
import subprocess
import sys

# Presets of ingot that both sides know, as Hugging Face writes them.
MODELS = {
    "gpt2-nano": {"model_type": "gpt2", "n_embd": 48, "n_layer": 3, "n_head": 3, "n_positions": 256},
    "gpt2-mini": {"model_type": "gpt2", "n_embd": 192, "n_layer": 6, "n_head": 6, "n_positions": 1024},
    "gpt2-small": {"model_type": "gpt2", "n_embd": 384, "n_layer": 6, "n_head": 6, "n_positions": 1024},
    "gpt2-124m": {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024},
    "gpt2-350m": {"model_type": "gpt2", "n_embd": 1024, "n_layer": 24, "n_head": 16, "n_positions": 1024},
    "llama-15m": {"model_type": "llama", "vocab_size": 32000, "hidden_size": 288, "intermediate_size": 768,
                  "num_hidden_layers": 6, "num_attention_heads": 6, "max_position_embeddings": 1024,
                  "rms_norm_eps": 1e-5, "tie_word_embeddings": True},
}
GPT2_VOCABULARY = 50257

# PyTorch's best seen tokens/s on two threads: model, batch, length, precision, recomputation.
BEST = {
    ("gpt2-124m", 1, 1024, "fp32", "none"): 179,
    ("gpt2-124m", 1, 1024, "bf16", "none"): 398,
    ("gpt2-124m", 4, 1024, "bf16", "none"): 409,
    ("gpt2-124m", 4, 1024, "bf16", "full"): 271,
    ("gpt2-124m", 4, 64, "fp32", "none"): 140,
    ("gpt2-124m", 4, 64, "bf16", "none"): 354,
}
# GFLOP/s of the two threads that the figures above were taken on.
BEST_PEAK = {"fp32": 2 * 205, "bf16": 2 * 375}
# A comparison counts only where PyTorch reaches this part of its best figure, scaled by the peak measured in the same run.
ENOUGH = 0.8


def share_of_best(job, tokens_per_second, peak_gflops):
    """None where no figure is known for the shape."""
    best = BEST.get((job["preset"], job["batch"], job["seq"], job["precision"], job["recompute"]))
    if best is None or job["threads"] != 2:
        return None
    return tokens_per_second / (best * peak_gflops / BEST_PEAK[job["precision"]])


class Failed(Exception):
    """One side gave no figure; the text says why."""


def environment(**more):
    """The environment for PyTorch's process; ends the program where the allocator is not installed."""
    jemalloc = sorted(glob.glob("/usr/lib/*/libjemalloc.so.2"))
    if not jemalloc:
        sys.exit("libjemalloc.so.2 is missing (package libjemalloc2): PyTorch would not be in its strongest form")
    result = dict(os.environ, LD_PRELOAD=jemalloc[0], MALLOC_CONF="dirty_decay_ms:-1,muzzy_decay_ms:-1", **more)
    with open("/proc/cpuinfo", encoding="ascii") as cpu:
        # OpenBLAS takes its AVX2 kernels on AMD's CPUs that have AVX-512; without AVX-512 its own choice is the best.
        if "avx512vl" in cpu.read():
            result["OPENBLAS_CORETYPE"] = "SkylakeX"
    return result


def limit_memory(limit_bytes):
    """For preexec_fn: the process' own memory, so that an allocation fails before the machine runs out."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = limit_bytes if hard == resource.RLIM_INFINITY else min(limit_bytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


class TorchTrainer:
    """torch_worker.py, waiting between runs while the other side is measured. A job is {preset, config, batch, seq,
    precision, recompute, threads}: config the model's keys, recompute none or full (activation checkpointing)."""

    def __init__(self, job, memory_limit=None):
        self.memory_limit = memory_limit
        worker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_worker.py")
        self.process = subprocess.Popen([worker, json.dumps(job)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True,
                                        env=environment(OMP_NUM_THREADS=str(job["threads"])),
                                        preexec_fn=lambda: memory_limit and limit_memory(memory_limit))
        self.flops_per_token = self._answer(None)["flops_per_token"]

    def _answer(self, seconds):
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        if not ready:
            self.close()
            raise Failed(f"not done after {seconds:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            raise Failed(f"ended with status {self.process.wait()}")
        answer = json.loads(line)
        if "error" not in answer:
            return answer
        self.close()
        if "allocate memory" in answer["error"] and self.memory_limit:
            raise Failed(f"does not fit {self.memory_limit / 1e9:.1f} GB of memory")
        raise Failed(answer["error"])

    def run(self, steps, seconds=None):
        """{seconds of each step, rss: the process' peak so far, in bytes}; `seconds` is the time it may take in all."""
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return self._answer(seconds)

    def close(self):
        self.process.kill()
        self.process.wait()
