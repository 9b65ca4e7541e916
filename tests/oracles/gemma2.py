"""Gemma 2 in PyTorch, written after its report (arXiv:2408.00118) and independent of Ingot: makes stored references.

  python3 gemma2.py --config config.json --out DIR [--batch B --seq T --documents --ignore-fraction F --train-steps N]
  python3 gemma2.py --model DIR …                  # adds a reference for the weights that are there, in float32

DIR gets config.json, model.safetensors (random weights) and reference.safetensors (docs/migrate.md), computed in float64.
"""
import argparse, json, math, os, struct, types
import numpy
import torch
from torch import nn
import torch.nn.functional as F
from dump_reference import dump_reference, save_safetensors


class RMSNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.zeros(size)), eps

    def forward(self, x):
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + self.eps) * (1 + self.weight)


def capped(x, cap):
    return x if cap is None else cap * torch.tanh(x / cap)


def rotated(x, positions, theta):
    """x [B,H,T,D]: dimension i turns with dimension i + D/2."""
    half = x.shape[-1] // 2
    angle = positions[:, None, :, None] * theta ** (-torch.arange(half, dtype=x.dtype) / half)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, bias = c, c.get("attention_bias", False)
        heads, shared, dim, width = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"], c["hidden_size"]
        self.q_proj = nn.Linear(width, heads * dim, bias)
        self.k_proj, self.v_proj = nn.Linear(width, shared * dim, bias), nn.Linear(width, shared * dim, bias)
        self.o_proj = nn.Linear(heads * dim, width, bias)

    def forward(self, x, positions, visible):
        c, (B, T, _) = self.c, x.shape
        split = lambda y: y.view(B, T, -1, c["head_dim"]).transpose(1, 2)
        q, k, v = split(self.q_proj(x)), split(self.k_proj(x)), split(self.v_proj(x))
        q, k = (rotated(y, positions, c.get("rope_theta", 10000.0)) for y in (q, k))
        out = []
        for head in range(q.shape[1]):
            h = head * k.shape[1] // q.shape[1]
            scores = q[:, head] @ k[:, h].transpose(1, 2) / math.sqrt(c["query_pre_attn_scalar"])
            scores = capped(scores, c["attn_logit_softcapping"]).masked_fill(~visible, -math.inf)
            out.append(scores.softmax(-1) @ v[:, h])
        return self.o_proj(torch.cat(out, -1))


class MLP(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, inner = c["hidden_size"], c["intermediate_size"]
        self.gate_proj, self.up_proj = nn.Linear(width, inner, False), nn.Linear(width, inner, False)
        self.down_proj = nn.Linear(inner, width, False)

    def forward(self, x):
        gate = self.gate_proj(x)
        gate = gate / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3)))
        return self.down_proj(gate * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.self_attn, self.mlp = Attention(c), MLP(c)
        for name in ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"):
            setattr(self, name, RMSNorm(c["hidden_size"], c["rms_norm_eps"]))

    def forward(self, x, positions, visible):
        x = x + self.post_attention_layernorm(self.self_attn(self.input_layernorm(x), positions, visible))
        return x + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x)))


class Gemma2(nn.Module):
    """Called as Hugging Face's Gemma2ForCausalLM is; document_ids, where given, keep attention within documents."""

    def __init__(self, c):
        super().__init__()
        self.c, self.model = c, nn.Module()
        self.model.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.model.layers = nn.ModuleList(Block(c) for _ in range(c["num_hidden_layers"]))
        self.model.norm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])

    def forward(self, input_ids, labels=None, document_ids=None, output_hidden_states=False):
        T = input_ids.shape[1]
        at = torch.arange(T)
        near = at[:, None] - at[None, :]
        documents = torch.zeros_like(input_ids) if document_ids is None else document_ids
        visible = (near >= 0) & (documents[:, :, None] == documents[:, None, :])
        positions = torch.stack([at - (row[:, None] == row[None, :]).long().argmax(1) for row in documents])
        window = self.c.get("sliding_window")
        x = self.model.embed_tokens(input_ids) * math.sqrt(self.c["hidden_size"])
        states = [x]
        for i, block in enumerate(self.model.layers):
            x = block(x, positions, visible & (near < window) if i % 2 == 0 and window else visible)
            states.append(x)
        states[-1] = last = self.model.norm(x)
        logits = capped(last @ self.model.embed_tokens.weight.T, self.c["final_logit_softcapping"])
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
        return types.SimpleNamespace(loss=loss, logits=logits, hidden_states=states if output_hidden_states else None)


def random_model(c, seed):
    """Norm weights and biases get noise too, so that nothing hides behind 0 or 1. Weights are those of float32."""
    model, generator = Gemma2(c), torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        p.data = torch.randn(p.shape, generator=generator) * (0.1 if "norm" in name else c["initializer_range"])
    return model.double()


def stored_model(c, path):
    model = Gemma2(c)
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        body = file.read()
    for name, p in model.named_parameters():
        begin, end = header[name]["data_offsets"]
        p.data = torch.from_numpy(numpy.frombuffer(body[begin:end], dtype="<f4").copy()).reshape(p.shape)
    return model


def random_batch(c, batch, tokens, seed, documents=False, ignore=0.0):
    generator = torch.Generator().manual_seed(seed)
    inputs = {"input_ids": torch.randint(0, c["vocab_size"], (batch, tokens), generator=generator)}
    labels = inputs["labels"] = inputs["input_ids"].clone()
    if documents:
        starts = torch.rand(batch, tokens, generator=generator) < 4.0 / tokens
        starts[:, 0] = False
        labels[starts] = -100
        inputs["document_ids"] = starts.long().cumsum(1)
    labels[torch.rand(batch, tokens, generator=generator) < ignore] = -100
    return inputs


def write_model(c, model, directory):
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "config.json"), "w") as file:
        json.dump(c, file, indent=1)
    save_safetensors(os.path.join(directory, "model.safetensors"), dict(model.named_parameters()), {"format": "pt"})


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--config"), a.add_argument("--out"), a.add_argument("--model")
    a.add_argument("--init-seed", type=int, default=7), a.add_argument("--data-seed", type=int, default=11)
    a.add_argument("--batch", type=int, default=2), a.add_argument("--seq", type=int, default=7)
    a.add_argument("--documents", action="store_true"), a.add_argument("--ignore-fraction", type=float, default=0.0)
    a.add_argument("--train-steps", type=int, default=0)
    o = a.parse_args()
    with open(o.config or os.path.join(o.model, "config.json")) as file:
        c = json.load(file)
    if o.model:
        model = stored_model(c, os.path.join(o.model, "model.safetensors"))
    else:
        model = random_model(c, o.init_seed)
        write_model(c, model, o.out)
    inputs = random_batch(c, o.batch, o.seq, o.data_seed, o.documents, o.ignore_fraction)
    dump_reference(model, os.path.join(o.model or o.out, "reference.safetensors"), **inputs, steps=o.train_steps)


if __name__ == "__main__":
    main()
