#!/usr/bin/env python3
"""Runs gpu_norms, times the same in PyTorch, and writes one report: JSON and Markdown.

    make benchmark-gpu [ARGS="--quick --filter REGEX"]

Without a GPU it ends with one sentence. torch.compile takes seconds a case: the whole sweep is hours, --quick minutes.
"""

import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile

import pytorch

GOALS = "goals: forward 95 % of a copy for widths 1024 to 65536 and many rows, backward 88 % (LayerNorm 85 %)"


def run_program(arguments):
    """gpu_norms' report; ends this program, with its message, where that cannot measure."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "norms.json"
        command = [str(arguments.program), "--json", str(file), "--filter", arguments.filter]
        status = subprocess.run(command + ["--quick"] * arguments.quick).returncode
        if not file.exists():
            sys.exit(status or 2)
        return json.loads(file.read_text())


def time_pytorch(report):
    """Adds `pytorch` to each case that was measured, and the versions to the report."""
    try:
        import torch
    except ImportError:
        report["pytorch"] = "not measured: this Python has no torch"
        return
    if not torch.cuda.is_available():
        report["pytorch"] = "not measured: this torch finds no GPU"
        return
    torch._functorch.config.donated_buffer = False  # a kept graph runs more than once
    report["pytorch"] = {"version": torch.__version__, "cuda": torch.version.cuda, "cudnn_version":
                         torch.backends.cudnn.version(), "cudnn": "not measured: " + pytorch.CUDNN}
    timer = pytorch.Timer(torch)
    for case in report["cases"]:
        if "value" in case:
            case["pytorch"] = pytorch.time_case(torch, timer, case["name"], case["bytes"])
            print(case["name"], case["pytorch"], flush=True)


def driver_version():
    """Of the kernel driver; CUDA's is in the report of the program."""
    try:
        return subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                              capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        return ""


def markdown(report):
    gpu, torch = report["gpu"], report["pytorch"]
    yield f"# Norm kernels on {gpu['name']}, {report['date']}"
    yield ""
    yield (f"`make benchmark-gpu`: driver {gpu.get('driver', '')}, CUDA {gpu['cuda_driver']} (runtime "
           f"{gpu['cuda_runtime']}). Cold L2, CUDA graphs; the share is the time of a copy of as many bytes by the "
           "kernel's, each kernel checked against the CPU before. PyTorch: its time by norma's, above 1 where norma "
           f"is faster. {GOALS[0].upper() + GOALS[1:]}.")
    yield ""
    if isinstance(torch, str):
        yield f"PyTorch: {torch}."
    else:
        yield f"PyTorch {torch['version']} (CUDA {torch['cuda']}). cuDNN: {torch['cudnn']}."
    yield ""
    yield "| case | us | share of copy | PyTorch eager | torch.compile |"
    yield "|---|--:|--:|--:|--:|"
    for case in report["cases"]:
        if "value" not in case:
            yield f"| {case['name']} | {case.get('error') or case.get('skipped') or 'checked'} | | | |"
            continue
        ratios = []
        for mode in ("eager", "compile"):
            time = case.get("pytorch", {}).get(mode)
            ratios.append(f"{time / case['microseconds']:.2f}" if time else "-")
        yield (f"| {case['name']} | {case['microseconds']:.2f} | {100 * case['value']:.1f} % | " +
               " | ".join(ratios) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=pathlib.Path("build/cuda/bin/gpu_norms"))
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/cuda/gpu_norms"),
                        help="without its suffixes, .json and .md")
    parser.add_argument("--filter", default="")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    report = run_program(arguments)
    report["date"] = datetime.date.today().isoformat()
    report["gpu"]["driver"] = driver_version()
    time_pytorch(report)
    arguments.output.with_suffix(".json").write_text(json.dumps(report, indent=2) + "\n")
    arguments.output.with_suffix(".md").write_text("\n".join(markdown(report)) + "\n")
    print(f"wrote {arguments.output}.json and .md")
    return 1 if any("error" in case for case in report["cases"]) else 0


if __name__ == "__main__":
    sys.exit(main())
