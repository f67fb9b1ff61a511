#!/usr/bin/env python3
"""The cases of norma_benchmark in PyTorch, side by side on this machine, and the ratio.

    make benchmark-pytorch            # installs PyTorch into a virtual environment outside of the repository

Both sides run in turn, several rounds, so that a busy neighbour or a change of clock hits both; a ratio is the
median of the ratios of the rounds. PyTorch runs at its best: all threads, its own choice of instruction set (the
variables that pin OpenBLAS to an old core are removed), and malloc told to keep memory instead of returning it to
the system after each operation. Before anything is timed, PyTorch computes norma's exported training step
from the same weights and must arrive at the same loss and gradients.

JSON (--json): a list of {name, value, unit, goal, holds}; value is PyTorch's time over norma's.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

TUNED = {
    "GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=1073741824:"
    "glibc.malloc.trim_threshold=4294967296:glibc.malloc.top_pad=67108864",
}
# A ratio of 1 is as fast as PyTorch; more is asked where its way is known to leave speed behind.
GOALS = {"training": 1.5, "dropout": 5.0}
UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "ATEN_CPU_CAPABILITY")


def restart_tuned():
    """malloc and BLAS read their settings when the process starts, so it starts again with them."""
    if os.environ.get("NORMA_TUNED") == "1":
        return
    environment = {k: v for k, v in os.environ.items() if k not in UNSET}
    environment.update(TUNED, NORMA_TUNED="1")
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)


def operation_cases(torch):
    """{name: call} for the operations; the same names and shapes as in operations.cpp."""
    F = torch.nn.functional
    cases = {}

    def both(name, function, *inputs):
        """forward without a graph, and backward alone on a kept graph, with a random cotangent."""
        inputs = [t.requires_grad_() if t is not None and t.is_floating_point() else t for t in inputs]
        leaves = [t for t in inputs if t is not None and t.requires_grad]
        output = function(*inputs)
        cotangent = torch.randn_like(output)

        def forward():
            with torch.no_grad():
                function(*inputs)

        operation, shape = name.split("/")
        cases[f"{operation}/forward/{shape}"] = forward
        cases[f"{operation}/backward/{shape}"] = lambda: torch.autograd.grad(
            output, leaves, cotangent, retain_graph=True
        )

    def rows_of(rows, width):
        shape = f"{rows}x{width}"
        x = lambda: torch.randn(rows, width)
        both(f"layer_norm/{shape}", lambda x, w, b: F.layer_norm(x, (width,), w, b), x(), torch.randn(width), torch.randn(width))
        both(f"rms_norm/{shape}", lambda x, w: F.rms_norm(x, (width,), w, 1e-6), x(), torch.randn(width))
        both(f"softmax/{shape}", lambda x: F.softmax(x, -1), x())
        both(f"gelu/{shape}", F.gelu, x())
        both(f"dropout/{shape}", lambda x: F.dropout(x, 0.1), x())
        both(f"add/{shape}", torch.add, x(), x())
        for name in ("dropout", "add"):  # nothing to compare: a mask drawn again, a gradient handed on
            del cases[f"{name}/backward/{shape}"]

    rows_of(4096, 256)
    rows_of(8192, 1024)
    both("linear/4096x256x1024", F.linear, torch.randn(4096, 256), torch.randn(1024, 256), torch.randn(1024))
    both("linear/4096x1024x256", F.linear, torch.randn(4096, 1024), torch.randn(256, 1024), torch.randn(256))
    q, k, v = (torch.randn(32, 4, 256, 32) for _ in range(3))
    both("attention/32x4x256x32", F.scaled_dot_product_attention, q, k, v)
    q, k, v = (torch.randn(32, 4, 256, 32) for _ in range(3))
    both("attention_causal/32x4x256x32", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v)
    index = torch.randint(20000, (8192,))
    both("embedding/8192x20000x256", lambda table: F.embedding(index, table), torch.randn(20000, 256))
    target = torch.randint(8192, (4096,))
    both("cross_entropy/4096x8192", lambda x: F.cross_entropy(x, target), torch.randn(4096, 8192))

    parameters = [torch.randn(1 << 18).requires_grad_() for _ in range(16)]
    for parameter in parameters:
        parameter.grad = torch.randn(1 << 18)
    cases["adamw/step/16x262144"] = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.01, fused=True).step
    return cases


def make_model(torch, state, heads, dropout):
    """norma's TransformerClassifier (pre-norm, learned positions, mean pooling) under the same names."""
    nn, F = torch.nn, torch.nn.functional
    vocab, width = state["token_embedding.weight"].shape
    layers = 1 + max(int(name.split(".")[2]) for name in state if name.startswith("encoder.layers."))

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(width, width) for _ in range(4))

        def forward(self, x, mask):
            q, k, v = (
                p(x).view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)
                for p in (self.q_proj, self.k_proj, self.v_proj)
            )
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            return self.o_proj(out.transpose(1, 2).reshape(x.shape))

    class FeedForward(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            return self.fc2(F.gelu(self.fc1(x)))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.self_attn, self.mlp = Attention(), FeedForward()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

        def forward(self, x, mask):
            x = x + F.dropout(self.self_attn(self.norm1(x), mask), dropout)
            return x + F.dropout(self.mlp(self.norm2(x)), dropout)

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(Block() for _ in range(layers))
            self.norm = nn.LayerNorm(width)

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.token_embedding = nn.Embedding(vocab, width, padding_idx=0)
            self.position_embedding = nn.Embedding(len(state["position_embedding.weight"]), width)
            self.encoder, self.classifier = Encoder(), nn.Linear(width, 2)

        def forward(self, tokens, padding):
            x = self.token_embedding(tokens) + self.position_embedding.weight[: tokens.shape[1]]
            x = F.dropout(x, dropout)
            mask = ~padding[:, None, None, :]
            for layer in self.encoder.layers:
                x = layer(x, mask)
            x = self.encoder.norm(x).masked_fill(padding[..., None], 0.0)
            return self.classifier(x.sum(1) / (~padding).sum(1, keepdim=True))

    model = Classifier()
    model.load_state_dict(state)
    return model


def training_cases(torch, folder):
    """{name: call} for whole training steps, after the gate: equal loss and gradients from norma's weights."""
    from safetensors.torch import load_file

    cases = {}
    for name, heads, dropout in (
        ("d128_l2_b32_s256", 4, 0.0),
        ("d128_l2_b32_s256", 4, 0.1),
        ("d256_l6_b16_s256", 8, 0.0),
    ):
        exported = load_file(f"{folder}/{name}.safetensors")
        state = {k.removeprefix("state/"): v for k, v in exported.items() if k.startswith("state/")}
        model = make_model(torch, state, heads, dropout)
        batch = exported["tokens"], exported["padding_mask"]

        def loss(model=model, batch=batch, labels=exported["labels"]):
            return torch.nn.functional.cross_entropy(model(*batch), labels)

        if not dropout:
            value = loss()
            value.backward()
            torch.testing.assert_close(value.detach(), exported["loss"], rtol=1e-5, atol=0.0)
            for key, parameter in model.named_parameters():
                expected = exported[f"grad/{key}"]
                atol = 1e-4 * expected.abs().max().item() + 1e-7
                torch.testing.assert_close(parameter.grad, expected, rtol=0.0, atol=atol)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)

        def step(model=model, loss=loss, optimizer=optimizer):
            optimizer.zero_grad()
            loss().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

        cases[f"training/step/{name}" + ("_dropout" if dropout else "")] = step
    return cases


def median_time(call, seconds):
    call()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def norma_times(program, name, seconds, environment):
    """Milliseconds of one case."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        # Google Benchmark describes the machine anew each time; that is read only where it fails.
        run = subprocess.run(
            [program, "--json", file.name, f"--benchmark_filter=^{name}/real_time$", f"--benchmark_min_time={seconds}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment,
        )
        if run.returncode != 0:
            sys.exit(f"{program} failed on {name}:\n{run.stderr}")
        (row,) = json.load(open(file.name))
    return row["milliseconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--norma", default="build/benchmark/bin/norma_benchmark", help="the program to compare with")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each case, side and round")
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    parser.add_argument("--json", help="write the results here")
    options = parser.parse_args()
    restart_tuned()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # of both sides

    import torch

    torch.set_num_threads(options.threads)
    print(f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, {options.threads} threads")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([options.norma, "--export", folder], check=True)
        cases = {**operation_cases(torch), **training_cases(torch, folder)}

    rows = []
    print(f"\n{'milliseconds':<42}{'norma':>10}{'PyTorch':>10}{'ratio':>8}{'goal':>7}")
    for name, call in cases.items():
        if options.only not in name:
            continue
        pairs = [
            (norma_times(options.norma, name, options.seconds, os.environ), median_time(call, options.seconds))
            for _ in range(options.rounds)
        ]
        ratio = statistics.median(theirs / ours for ours, theirs in pairs)
        ours, theirs = (statistics.median(side) for side in zip(*pairs))
        goal = GOALS.get(name.split("/")[0], 1.0)
        row = {"name": name, "value": round(ratio, 3), "unit": "PyTorch's time / norma's time",
               "goal": goal, "holds": ratio >= goal, "norma_ms": ours, "pytorch_ms": theirs}
        rows.append(row)
        print(f"{name:<42}{ours:>10.3f}{theirs:>10.3f}{ratio:>7.2f}x{goal:>6.1f}x{'' if row['holds'] else '  missed'}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main()
