#!/usr/bin/env python3
"""Ten steps of each optimizer in plain PyTorch, float64: what tests/golden/optimizers.safetensors holds.

    /usr/bin/python3 tests/oracles/optimizers.py tests/golden/optimizers.safetensors

Tensors: start.NAME, gradient.NAME and TYPE.NAME, the parameter after ten steps of TYPE. The gradient of step t = 1, 2, …
is gradient.NAME, flattened and rolled by 37 t, times 1 + t/4 (in float32). Each function below is written from its paper:
AdamW (Loshchilov and Hutter 2019), Lion (Chen et al. 2023), Adafactor (Shazeer and Stern 2018), Muon (Jordan et al. 2024,
with the scale of Liu et al. 2025), 8-bit states (Dettmers et al. 2022).
"""
import sys
import torch
from dump_reference import save_safetensors

SHAPES = {"embedding.weight": (67, 62), "hidden.wide.weight": (24, 40), "hidden.tall.weight": (40, 24), "norm.weight": (24,)}
STEPS, RATE, DECAY, MAX_NORM = 10, 0.01, 0.1, 1.0
NORM_RATE_SCALE = 0.5  # of norm.weight: a group of its own


def adam_moments(state, g, t, betas=(0.9, 0.95), eps=1e-8):
    m = state["m"] = betas[0] * state.get("m", 0) + (1 - betas[0]) * g
    v = state["v"] = betas[1] * state.get("v", 0) + (1 - betas[1]) * g * g
    return (m / (1 - betas[0] ** t)) / ((v / (1 - betas[1] ** t)).sqrt() + eps)


def adamw(name, p, g, state, t, rate):
    return rate * adam_moments(state, g, t)


def lion(name, p, g, state, t, rate, betas=(0.9, 0.99)):
    m = state.get("m", torch.zeros_like(g))
    state["m"] = betas[1] * m + (1 - betas[1]) * g
    return rate * torch.sign(betas[0] * m + (1 - betas[0]) * g)


def adafactor(name, p, g, state, t, rate, relative=False, eps=(1e-30, 1e-3), threshold=1.0, decay=0.8):
    beta2, square = 1 - t ** -decay, g * g + eps[0]
    if g.dim() == 2:
        r = state["r"] = beta2 * state.get("r", 0) + (1 - beta2) * square.sum(1)
        c = state["c"] = beta2 * state.get("c", 0) + (1 - beta2) * square.sum(0)
        v = torch.outer(r, c) / r.sum()
    else:
        v = state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * square
    u = g / v.sqrt()
    u = u / max(1.0, (u * u).mean().sqrt().item() / threshold)
    return rate * (max(eps[1], (p * p).mean().sqrt().item()) if relative else 1.0) * u


def adafactor_relative(*arguments):
    return adafactor(*arguments, relative=True)


def muon(name, p, g, state, t, rate, momentum=0.95):
    if not name.startswith("hidden."):
        return adamw(name, p, g, state, t, rate)
    m = state["m"] = momentum * state.get("m", 0) + (1 - momentum) * g
    x = (1 - momentum) * g + momentum * m
    is_tall = x.shape[0] > x.shape[1]
    x = x.T if is_tall else x
    x = x / (x.norm() + 1e-7)
    a, b, c = 3.4445, -4.7750, 2.0315
    for _ in range(5):
        s = x @ x.T
        x = a * x + (b * s + c * s @ s) @ x
    return rate * 0.2 * max(g.shape) ** 0.5 * (x.T if is_tall else x)


def dynamic_map(signed):
    """The dynamic (tree) data type of 8 bits: decades 1e-6 to 1, each of twice as many equal parts as the one before,
    represented by their middles; 0 and 1 besides."""
    values = [0.0, 1.0]
    for i in range(7):
        parts = 2 ** i if signed else 2 ** (i + 1)
        edges = torch.linspace(0.1, 1, parts + 1, dtype=torch.float64)
        middles = 10.0 ** (i - 6) * (edges[:-1] + edges[1:]) / 2
        values += middles.tolist() + ((-middles).tolist() if signed else [])
    assert len(values) == 256
    return torch.tensor(sorted(values), dtype=torch.float64)


def through_8_bits(x, signed, block=256):
    """Quantized block by block to the nearest value of the map, and back. A second moment that is not 0 stays so."""
    table, flat, out = dynamic_map(signed), x.flatten(), []
    for part in flat.split(block):
        scale = part.abs().max()
        nearest = ((part / scale).unsqueeze(1) - table).abs().argmin(1)
        if not signed:
            nearest = torch.where(part > 0, nearest.clamp(min=1), nearest)
        out.append(table[nearest] * scale)
    return torch.cat(out).reshape(x.shape)


def adamw_8bit(name, p, g, state, t, rate):
    update = rate * adam_moments(state, g, t)
    if g.numel() >= 4096:
        state.update(m=through_8_bits(state["m"], True), v=through_8_bits(state["v"], False))
    return update


def gradient(base, t):
    return (base.flatten().roll(-37 * t) * (1 + t / 4)).reshape(base.shape).double()


def run(optimizer, start, base):
    parameters = {name: p.double() for name, p in start.items()}
    state = {name: {} for name in start}
    for t in range(1, STEPS + 1):
        gradients = {name: gradient(g, t) for name, g in base.items()}
        norm = sum((g * g).sum() for g in gradients.values()).sqrt()
        for name, p in parameters.items():
            g = gradients[name] * min(1.0, MAX_NORM / (norm + 1e-6))
            rate = RATE * (NORM_RATE_SCALE if name == "norm.weight" else 1)
            update = optimizer(name, p, g, state[name], t, rate)
            if p.dim() >= 2:
                p = p * (1 - rate * DECAY)
            parameters[name] = p - update
    return parameters


def main():
    generator = torch.Generator().manual_seed(5)
    normal = lambda shape: torch.randn(shape, generator=generator)
    start = {name: normal(shape) for name, shape in SHAPES.items()}
    # Rows and columns of several magnitudes, as gradients have them.
    base = {name: normal(shape) * torch.exp(normal(shape[:1])).reshape(-1, *[1] * (len(shape) - 1))
            for name, shape in SHAPES.items()}
    tensors = {f"start.{name}": p for name, p in start.items()}
    tensors.update({f"gradient.{name}": g for name, g in base.items()})
    for optimizer in (adamw, lion, adafactor, adafactor_relative, muon, adamw_8bit):
        tensors.update({f"{optimizer.__name__}.{name}": p for name, p in run(optimizer, start, base).items()})
    save_safetensors(sys.argv[1], tensors, {})


if __name__ == "__main__":
    main()
