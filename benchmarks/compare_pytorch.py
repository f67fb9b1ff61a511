#!/usr/bin/env python3
"""The cases of norma_benchmark in PyTorch, side by side on this machine, and the ratio.

    make benchmark-pytorch            # installs PyTorch into a virtual environment outside of the repository
    make bench-cpu                    # --all: also memory, one thread, page faults, growth; writes benchmarks/results/cpu.json

Both sides run in turn, several rounds, so that a busy neighbour or a change of clock hits both; a ratio is the
median of the ratios of the rounds. PyTorch runs at its best: all threads, its own choice of instruction set (the
variables that pin OpenBLAS to an old core are removed), and malloc told to keep memory instead of returning it to
the system after each operation. Before anything is timed, PyTorch computes norma's exported training step
from the same weights and must arrive at the same loss and gradients.

JSON (--json): a list of {name, value, unit, goal, holds}. A row without a goal is a number to read.
"""

import argparse
import glob
import json
import os
import resource
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
GOALS = {"training": 1.5, "training_dropout": 2.5, "dropout": 5.0, "overhead": 4.0}
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
    rows_of(2048, 8192)
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
    one = torch.full((1,), 0.001, requires_grad=True)

    def chain():
        y = one
        for _ in range(500):
            y = (y + one) * one
        y.backward()
        one.grad = None

    cases["overhead/step/1000"] = chain
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


def training_step(torch, path, heads, dropout):
    """A whole training step, after the gate: equal loss and gradients from norma's weights."""
    from safetensors.torch import load_file

    exported = load_file(path)
    state = {k.removeprefix("state/"): v for k, v in exported.items() if k.startswith("state/")}
    model = make_model(torch, state, heads, dropout)

    def loss():
        logits = model(exported["tokens"], exported["padding_mask"])
        return torch.nn.functional.cross_entropy(logits, exported["labels"])

    if not dropout:
        value = loss()
        value.backward()
        torch.testing.assert_close(value.detach(), exported["loss"], rtol=1e-5, atol=0.0)
        for key, parameter in model.named_parameters():
            expected = exported[f"grad/{key}"]
            atol = 1e-4 * expected.abs().max().item() + 1e-7
            torch.testing.assert_close(parameter.grad, expected, rtol=0.0, atol=atol)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)

    def step():
        optimizer.zero_grad()
        loss().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def training_cases(torch, folder):
    """{name: a function that makes the step} for whole training steps; made late, for they take memory."""
    cases = {}
    for path in sorted(glob.glob(f"{folder}/*/*.safetensors"), key=lambda p: ("training" not in p, p)):
        family, name = path.removesuffix(".safetensors").split("/")[-2:]
        heads = int(name.split("_")[0][1:]) // 32
        cases[f"{family}/step/{name}"] = lambda path=path, heads=heads: training_step(torch, path, heads, 0.0)
        if family == "training":
            cases[f"{family}/step/{name}_dropout"] = lambda path=path, heads=heads: training_step(torch, path, heads, 0.1)
    return cases


def median_time(call, seconds):
    call()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def norma_run(program, name, seconds, environment, *flags):
    """The row that norma_benchmark writes for one case."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        # Google Benchmark describes the machine anew each time; that is read only where it fails.
        run = subprocess.run(
            [program, "--json", file.name, f"--benchmark_filter=^{name}/manual_time$", f"--benchmark_min_time={seconds}", *flags],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment,
        )
        if run.returncode != 0:
            sys.exit(f"{program} failed on {name}:\n{run.stderr}")
        (row,) = json.load(open(file.name))
    return row


def print_peak(make):
    """For a process of its own: by how much three steps raise the most memory that it ever had."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step = make()
    for _ in range(3):
        step()
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


class Report:
    """Rows of the JSON, printed as they come."""

    def __init__(self, file):
        self.rows, self.file = [], file

    def add(self, name, value, unit, goal=None, at_most=False, **more):
        holds = None if goal is None else bool(value <= goal if at_most else value >= goal)
        self.rows.append({"name": name, "value": round(value, 4), "unit": unit, "goal": goal, "holds": holds, **more})
        aim = "" if goal is None else f"{'at most' if at_most else 'at least'} {goal:g}{'' if holds else '  missed'}"
        print(f"{name:<52}{value:>9.2f}  {aim:<22}{unit}", flush=True)
        if self.file:
            with open(self.file, "w") as file:
                json.dump(self.rows, file, indent=2)
                file.write("\n")


def compare(report, options, torch, name, make, threads):
    """Time of one case on both sides, in turn; gives norma's median."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    torch.set_num_threads(threads)
    suffix = "" if threads == options.threads else f", {threads} thread"
    call = make()
    rounds = []
    for number in range(options.rounds):
        checked = number == 0 and threads == options.threads
        ours = norma_run(options.norma, name, options.seconds, environment, *([] if checked else ["--ungated"]))
        rounds.append((ours, median_time(call, options.seconds)))
    milliseconds = statistics.median(ours["milliseconds"] for ours, _ in rounds)
    theirs = statistics.median(theirs for _, theirs in rounds)
    family = name.split("/")[0]
    goal = GOALS.get(family + ("_dropout" if name.endswith("_dropout") else ""), 1.0)
    report.add(name + suffix, statistics.median(theirs / ours["milliseconds"] for ours, theirs in rounds),
               "PyTorch's time / norma's", goal, norma_ms=milliseconds, pytorch_ms=theirs)
    fraction = statistics.median(ours["value"] for ours, _ in rounds)
    if fraction > 0.0 and options.all:
        report.add(name + suffix + ", of the ceiling", fraction, "fraction of copy or of the multiply-add peak",
                   rounds[0][0]["goal"] or None)
    if family in ("training", "growth") and options.all:
        report.add(name + suffix + ", page faults", rounds[-1][0]["faults"], "page faults per step", 0.5, at_most=True)
    return milliseconds, rounds[-1][0]


def compare_memory(report, options, folder, name):
    ours = norma_run(options.norma, name, 0.1, os.environ, "--ungated")["peak_mib"]
    run = subprocess.run([sys.executable, __file__, "--peak-of", name, "--exported", folder],
                         stdout=subprocess.PIPE, text=True, check=True)
    theirs = float(run.stdout)
    report.add(name + ", memory", theirs / ours, "PyTorch's peak memory / norma's", 2.0, norma_mib=ours, pytorch_mib=theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--norma", default="build/benchmark/bin/norma_benchmark", help="the program to compare with")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each case, side and round")
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    parser.add_argument("--all", action="store_true", help="also ceilings, one thread, memory, page faults, growth")
    parser.add_argument("--json", help="write the results here")
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)  # print_peak() in a process of its own
    parser.add_argument("--exported", help=argparse.SUPPRESS)
    options = parser.parse_args()
    restart_tuned()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # of both sides

    import torch

    torch.set_num_threads(options.threads)
    if options.peak_of:
        print_peak(training_cases(torch, options.exported)[options.peak_of])
        return
    report = Report(options.json)
    print(f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, {options.threads} threads\n")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([options.norma, "--export", folder], check=True)
        cases = {name: lambda call=call: call for name, call in operation_cases(torch).items()}
        cases.update(training_cases(torch, folder))
        if not options.all:
            cases = {name: make for name, make in cases.items() if not name.startswith("growth")}
        tensors = {}
        for name, make in cases.items():
            if options.only not in name:
                continue
            milliseconds, row = compare(report, options, torch, name, make, options.threads)
            tensors[name] = row["tensors_mib"]
            if options.all and name.startswith("training"):
                if options.threads > 1:
                    alone, _ = compare(report, options, torch, name, make, 1)
                    report.add(f"{name}, {options.threads} threads", alone / milliseconds,
                               "time of one thread / time of all", 0.9 * options.threads)
                compare_memory(report, options, folder, name)
        short, long = (tensors.get(f"growth/step/d128_l2_b4_s{length}") for length in (1024, 4096))
        if short and long:
            report.add("growth/memory", long / short, "peak of length 4096 / of length 1024", 4.4, at_most=True)
    missed = sum(row["holds"] is False for row in report.rows)
    print(f"\n{sum(row['holds'] is True for row in report.rows)} goals hold, {missed} are missed")


if __name__ == "__main__":
    main()
