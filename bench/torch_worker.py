#!/usr/bin/python3
"""Training steps in plain torch, without a framework around it: AdamW, clipping at 1.0, bf16 by autocast.

Started by peer.TorchTrainer with the job as JSON. Each line on stdin is a number of steps, answered by one line of JSON:
the seconds of each and the peak resident memory, or what went wrong.
"""
import contextlib
import json
import resource
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import peer


def causal_attention(q, k, v, mask):
    """All (batch, heads, tokens, head_dim). The scale goes over q, the mask into the scores in place: no passes over
    tokens x tokens that could be spared."""
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(2, 3)
    return torch.softmax(scores.masked_fill_(mask, float("-inf")), dim=-1) @ v


def split_heads(x, heads):
    batch, tokens, width = x.shape
    return x.view(batch, tokens, heads, width // heads).transpose(1, 2)


def join_heads(x):
    return x.transpose(1, 2).flatten(2)


class Gpt2Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.gelu = nn.GELU(approximate="tanh")

    def forward(self, x, mask):
        q, k, v = (split_heads(y, self.heads) for y in self.qkv(self.ln_1(x)).chunk(3, dim=2))
        x = x + self.out(join_heads(causal_attention(q, k, v, mask)))
        return x + self.down(self.gelu(self.up(self.ln_2(x))))


class RmsNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


class LlamaBlock(nn.Module):
    def __init__(self, config, cos, sin):
        super().__init__()
        width, inner, eps = config["hidden_size"], config["intermediate_size"], config["rms_norm_eps"]
        self.heads, self.cos, self.sin = config["num_attention_heads"], cos, sin
        self.norm_1, self.norm_2 = RmsNorm(width, eps), RmsNorm(width, eps)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate_up, self.down = nn.Linear(width, 2 * inner, bias=False), nn.Linear(inner, width, bias=False)

    def rotate(self, x):
        cos, sin = self.cos.to(x.dtype), self.sin.to(x.dtype)
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)

    def forward(self, x, mask):
        q, k, v = (split_heads(y, self.heads) for y in self.qkv(self.norm_1(x)).chunk(3, dim=2))
        x = x + self.out(join_heads(causal_attention(self.rotate(q), self.rotate(k), v, mask)))
        gate, up = self.gate_up(self.norm_2(x)).chunk(2, dim=2)
        return x + self.down(F.silu(gate) * up)


def rotary_table(tokens, head_dim):
    """cos and sin, each (tokens, head_dim / 2); Su et al., arXiv:2104.09864."""
    frequency = 10000.0 ** (-torch.arange(0, head_dim, 2) / head_dim)
    angle = torch.outer(torch.arange(tokens).float(), frequency)
    return angle.cos(), angle.sin()


class LanguageModel(nn.Module):
    """GPT-2 or Llama with a tied head."""

    def __init__(self, config, tokens, recompute):
        super().__init__()
        self.recompute = recompute
        self.gpt2 = config["model_type"] == "gpt2"
        self.width = config["n_embd" if self.gpt2 else "hidden_size"]
        self.layers = config["n_layer" if self.gpt2 else "num_hidden_layers"]
        self.vocab_size = config.get("vocab_size", peer.GPT2_VOCABULARY)
        self.embedding = nn.Embedding(self.vocab_size, self.width)
        if self.gpt2:
            self.positions = nn.Embedding(config["n_positions"], self.width)
            self.blocks = nn.ModuleList(Gpt2Block(self.width, config["n_head"]) for _ in range(self.layers))
            self.norm = nn.LayerNorm(self.width)
        else:
            table = rotary_table(tokens, self.width // config["num_attention_heads"])
            self.blocks = nn.ModuleList(LlamaBlock(config, *table) for _ in range(self.layers))
            self.norm = RmsNorm(self.width, config["rms_norm_eps"])
        self.register_buffer("mask", torch.ones(tokens, tokens, dtype=torch.bool).triu(1))
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def flops_per_token(self, tokens):
        return 6 * sum(p.numel() for p in self.parameters()) + 12 * self.layers * self.width * tokens

    def forward(self, ids, targets):
        x = self.embedding(ids)
        if self.gpt2:
            x = x + self.positions(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = checkpoint(block, x, self.mask, preserve_rng_state=False) if self.recompute else block(x, self.mask)
        logits = self.norm(x) @ self.embedding.weight.t()
        return F.cross_entropy(logits.view(-1, self.vocab_size), targets.reshape(-1))


class Trainer:
    def __init__(self, job):
        torch.set_num_threads(job["threads"])
        torch.manual_seed(1)
        self.shape = (job["batch"], job["seq"] + 1)
        self.bf16 = job["precision"] == "bf16"
        self.model = LanguageModel(job["config"], job["seq"], job["recompute"] == "full")
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1)

    def step(self):
        ids = torch.randint(self.model.vocab_size, self.shape)
        start = time.perf_counter()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16) if self.bf16 else contextlib.nullcontext():
            loss = self.model(ids[:, :-1], ids[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        loss.item()
        return time.perf_counter() - start


def serve(job):
    trainer = Trainer(job)
    print(json.dumps({"flops_per_token": trainer.model.flops_per_token(job["seq"])}), flush=True)
    for line in sys.stdin:
        seconds = [trainer.step() for _ in range(int(line))]
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"seconds": seconds, "rss": rss}), flush=True)


if __name__ == "__main__":
    try:
        serve(json.loads(sys.argv[1]))
    except (RuntimeError, MemoryError) as error:  # torch's errors, those of its allocator included
        print(json.dumps({"error": " ".join(str(error).split())[:300] or "cannot allocate memory"}), flush=True)
