"""The page of results.py: tables of Markdown from its records."""
import statistics

import peer

SHOWN_OPS = 5


def median(record, side, key):
    values = [figures[side][key] for figures in record["rounds"] if side in figures]
    return statistics.median(values) if values else None


def neighbour_ratios(record, side, other, key="tokens_per_second"):
    """side / other of each two runs that followed each other (A B A B: three pairs)."""
    order = [(name, figures[name][key]) for figures in record["rounds"] for name in (side, other) if name in figures]
    return [a / b if name == side else b / a for (name, a), (next_name, b) in zip(order, order[1:]) if name != next_name]


def number(value, form="{:.0f}"):
    return "" if value is None else form.format(value)


def quotient(a, b):
    return None if a is None or b is None else a / b


def megabytes(value):
    return quotient(value, 1e6)


def percent(value, form="{:.0f}%"):
    return number(None if value is None else 100 * value, form)


def spread(ratios):
    return f"**{statistics.median(ratios):.2f}** ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else ""


def peer_share(record):
    speed, peak = median(record, "torch", "tokens_per_second"), median(record, "ingot", "peak_gflops")
    if speed is None or peak is None:
        return ""
    share = peer.share_of_best(record["case"], speed, peak)
    if share is None:
        return ""
    return percent(share) + ("" if share >= peer.ENOUGH else ", **does not count**")


def torch_mfu(record):
    rate = median(record, "torch", "tokens_per_second")
    peak = median(record, "ingot", "peak_gflops")
    return None if rate is None or peak is None else rate * median(record, "torch", "flops_per_token") / (peak * 1e9)


def speed_row(record):
    slower = neighbour_ratios(record, "none", "ingot")  # speeds: the other way round than times
    return [record["case"]["name"],
            number(median(record, "ingot", "tokens_per_second")), number(median(record, "torch", "tokens_per_second")),
            spread(neighbour_ratios(record, "ingot", "torch")), percent(median(record, "ingot", "mfu"), "{:.1f}%"),
            percent(torch_mfu(record), "{:.1f}%"), number(median(record, "ingot", "peak_gflops")),
            percent(statistics.median(slower) - 1, "{:+.1f}%") if slower else "", peer_share(record),
            f"{len(record['rounds'])} × {record['steps']}"]


def memory_row(record):
    ours, theirs, planned = (median(record, *key) for key in
                             (("ingot", "rss"), ("torch", "rss"), ("ingot", "planned_bytes")))
    arena, bound = (median(record, "ingot", f"activations_{key}") for key in ("bytes", "lower_bound_bytes"))
    off = None if ours is None else planned / ours - 1
    return [record["case"]["name"], number(megabytes(ours)), number(megabytes(theirs)), percent(quotient(ours, theirs)),
            number(megabytes(planned)), percent(off, "{:+.1f}%"),
            number(megabytes(median(record, "ingot", "activations_kept_bytes"))), number(megabytes(arena)),
            number(megabytes(bound)), number(quotient(arena, bound), "{:.3f}")]


def op_row(record):
    shares = {}
    for figures in record["rounds"]:
        for op, ms in figures.get("ingot", {}).get("breakdown", {}).items():
            shares[op] = shares.get(op, 0) + ms
    total = sum(shares.values())
    largest = sorted(shares.items(), key=lambda op: -op[1])[:SHOWN_OPS]
    rest = total - sum(ms for _, ms in largest)
    cells = [f"{op} {percent(ms / total)}" for op, ms in largest] + [f"all others {percent(rest / total)}"] if total else [""]
    return [record["case"]["name"], number(median(record, "ingot", "step_ms")), ", ".join(cells)]


def table(heads, rows, last="---:"):
    """The first column is text, the last one where it is so given."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "|".join(["---", *["---:"] * (len(heads) - 2), last]) + "|"]
    return lines + ["| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in rows] + [""]


def distinct(values):
    return list(dict.fromkeys(values))


def machine_line(record):
    m = record["machine"]
    bf16 = f"with {m['bf16_instructions']}" if m["bf16_instructions"] else "no instructions for bf16"
    return (f"{m['cpu']}, {m['cores']} cores, {m['isa']}, {bf16}; {m['available_memory'] / 1e9:.1f} GB of memory free. "
            f"`ingot check`: {m['peak_gflops']['fp32']:.0f} GFLOP/s in fp32, {m['peak_gflops']['bf16']:.0f} in bf16; reading "
            f"{m['memory_gbytes_per_s']['read']:.0f}, copying {m['memory_gbytes_per_s']['copy']:.0f} GB/s.")


def head(records):
    # Peaks differ from start to start: the machine is named once a CPU, with what was measured last.
    machines = {(r["machine"]["cpu"], r["machine"]["isa"]): r for r in records}
    commits, commands = distinct(r["commit"] for r in records), distinct(r["command"] for r in records)
    dates = sorted(distinct(r["date"] for r in records))
    return ["# Training beside PyTorch", "", *(f"- {machine_line(record)}" for record in machines.values()),
            f"- {' to '.join(distinct([dates[0], dates[-1]]))}, commit{'s' if len(commits) > 1 else ''} {', '.join(commits)}.",
            "- " + ", ".join(f"`{command}`" for command in commands) + "; each run of ours is `ingot bench train --model M "
            "--batch B --seq T --precision P --recompute R --threads N --steps S --json`.", "",
            "A case is size (15m: `llama-15m`, 124m: `gpt2-124m`, 350m: `gpt2-350m`), batch × length, precision, "
            "recomputation, threads. Both sides run in turn; the ratio is the median over runs that followed each other, with "
            "the smallest and the largest. PyTorch has an allocator that keeps its memory, the widest BLAS kernels, autocast "
            "for bf16 and activation checkpointing for `full`; it has nothing for `selective`, nor fp16 on a CPU. MFU counts "
            "6 × parameters + 12 × layers × width × length FLOPs a token, on the matrix peak measured in ingot's own process.", ""]


def page(records):
    """Of one record a case."""
    lines = head(records)
    measured = [r for r in records if any(r["rounds"])]
    lines += ["## Speed", "",
              "*Of its best*: what PyTorch reached of the best figure known for it, scaled by this run's peak; below "
              f"{percent(peer.ENOUGH)} the comparison does not count (empty: no figure is known). *Against none*: the time of a "
              "step beside the same without recomputation, in the same turns.", ""]
    lines += table(["case", "tokens/s", "PyTorch", "ratio", "MFU", "PyTorch's MFU", "peak GFLOP/s", "against none",
                    "of its best", "rounds × steps"], map(speed_row, measured))
    lines += ["## Memory", "", "In MB (10^6 bytes), peaks of resident memory of the whole process. *Kept*: what the forward pass "
              "leaves for the backward pass. *Arena*: everything that lives within a step, and its lower bound, the largest "
              "sum of what is needed at one time.", ""]
    lines += table(["case", "peak", "PyTorch", "of PyTorch's", "planned", "plan against peak", "kept", "arena", "lower bound",
                    "arena / bound"], map(memory_row, measured))
    lines += ["## Where a step goes", "", "Time of the ops of one step, forward, backward and update.", ""]
    lines += table(["case", "ms a step", "largest parts"], [op_row(r) for r in measured if any("ingot" in f for f in r["rounds"])], "---")
    failures = [[r["case"]["name"], {"torch": "PyTorch", "none": "ingot without recomputation"}.get(side, side), why]
                for r in records for side, why in r["failures"].items()]
    if failures:
        lines += ["## Without a figure", ""] + table(["case", "side", "why"], failures, "---")
    return "\n".join(lines).rstrip() + "\n"
