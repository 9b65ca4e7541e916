"""Writes what a PyTorch model computes as a reference for `ingot verify` (docs/migrate.md has the format). Needs torch alone."""
import json, struct
import torch


def dump_reference(model, path, input_ids, labels, steps=0, **more):
    """`model` is called as Hugging Face's are; labels are unshifted, -100 is ignored; more: document_ids, …"""
    inputs = {"input_ids": input_ids, "labels": labels, **more}
    model.eval()  # no dropout
    model.zero_grad(set_to_none=True)
    blocks = next(m for m in model.modules() if isinstance(m, torch.nn.ModuleList))
    last = []  # Hugging Face's last hidden state is that after the final norm: the last block's is caught here
    hook = blocks[-1].register_forward_hook(lambda m, i, o: last.append(o[0] if isinstance(o, tuple) else o))
    result = model(**inputs, output_hidden_states=True)
    hook.remove()
    states = [*result.hidden_states[:-1], *last]
    for state in states:
        state.retain_grad()
    result.loss.backward()
    tensors = {**inputs, "loss": result.loss, "logits": result.logits, "final_norm": result.hidden_states[-1]}
    tensors.update({f"hidden_states.{k}": state for k, state in enumerate(states)})
    tensors.update({f"grad.hidden_states.{k}": state.grad for k, state in enumerate(states)})
    tensors.update({f"grad.{name}": p.grad.clone() for name, p in model.named_parameters() if p.requires_grad})
    metadata = train(model, inputs, tensors, steps) if steps else {}
    save_safetensors(path, tensors, metadata)


def train(model, inputs, tensors, steps, lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1, max_grad_norm=1.0):
    """So many AdamW steps on the batch; weight decay falls on tensors of two or more dimensions."""
    parameters = dict(model.named_parameters())
    groups = [{"params": [p for p in parameters.values() if p.dim() >= 2], "weight_decay": weight_decay},
              {"params": [p for p in parameters.values() if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=lr, betas=betas, eps=eps)
    losses, norms = [], []
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        loss = model(**inputs).loss
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(list(parameters.values()), max_grad_norm or float("inf")))
        optimizer.step()
        losses.append(loss.detach())
    tensors["train.losses"], tensors["train.grad_norms"] = torch.stack(losses), torch.stack(norms)
    tensors.update({f"after.{name}": p for name, p in parameters.items()})
    return {"optimizer": json.dumps({"type": "adamw", "learning_rate": lr, "betas": betas, "eps": eps,
                                     "weight_decay": weight_decay, "max_grad_norm": max_grad_norm})}


def save_safetensors(path, tensors, metadata):
    """As safetensors.torch.save_file does; floats in float32."""
    header, body = {"__metadata__": metadata} if metadata else {}, b""
    for name, tensor in sorted(tensors.items()):
        tensor = tensor.detach().cpu()
        kind, tensor = ("F32", tensor.float()) if tensor.is_floating_point() else ("I64", tensor.long())
        raw = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)
