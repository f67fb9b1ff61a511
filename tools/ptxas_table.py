#!/usr/bin/env python3
"""Compiles the CUDA kernels for each GPU and writes what ptxas says of them into docs/ptxas.md.

    tools/ptxas_table.py [--nvcc nvcc] [--arch 80 90 100 120] [--kernels row_norm_float32 ...]

Needs nvcc, no GPU. Exits with 1 where a kernel of a main path spills registers. What was compiled before and has not
changed since is read from --reports: a run that was interrupted goes on where it was.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Main paths: everything but what only rare options of the family or unaligned tensors, read by single elements, reach.
RARE = re.compile(r"GeneralRow|Geometry<\d+, \d+, 1, ")


def compile_kernels(nvcc, source, arch, include):
    """ptxas' report for one source on one architecture."""
    run = subprocess.run([nvcc, "-std=c++20", "--expt-relaxed-constexpr", "-Xptxas", "-v",
                          f"-gencode=arch=compute_{arch},code=sm_{arch}", f"-I{include}", "-cubin", str(source), "-o", "/dev/null"],
                         capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stderr)
    return run.stderr


def report_of(arguments, source, arch, include):
    """The report, from a file where that is newer than every source of the kernels."""
    path = arguments.reports / f"{source.stem}-{arch}.txt"
    newest = max(f.stat().st_mtime for f in [*ROOT.glob("cuda/kernels/*.*h"), *ROOT.glob("cuda/*.cuh"), source])
    if not path.exists() or path.stat().st_mtime < newest:
        print(source.stem, arch, flush=True)
        report = compile_kernels(arguments.nvcc, source, arch, include)
        arguments.reports.mkdir(parents=True, exist_ok=True)
        path.write_text(report)
    return path.read_text()


def parse(report):
    """[(kernel, architecture, registers, spilled bytes, stack bytes, shared bytes)]"""
    rows, name, arch, stack, spill = [], None, None, 0, 0
    for line in report.splitlines():
        if m := re.search(r"Compiling entry function '(\S+)' for 'sm_(\w+)'", line):
            name, arch = m.groups()
        elif m := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            stack, spill = int(m[1]), int(m[2]) + int(m[3])
        elif (m := re.search(r"Used (\d+) registers", line)) and name:
            shared = re.search(r"(\d+) bytes smem", line)
            rows.append((name, arch, int(m[1]), spill, stack, int(shared[1]) if shared else 0))
            name = None
    return rows


def readable(names):
    out = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True).stdout
    result = []
    for text in out.splitlines():
        text = re.sub(r"norma::(cuda_kernels::)?|\(anonymous namespace\)::|\(int\)|^void ", "", text)
        depth, end = 0, len(text)
        for i, c in enumerate(text):  # the parameter list starts at the first ( outside of < >
            depth += (c == "<") - (c == ">")
            if c == "(" and depth == 0:
                end = i
                break
        result.append(text[:end].replace(" >", ">"))
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--arch", nargs="+", default=["80", "90", "100", "120"])
    parser.add_argument("--kernels", nargs="+", help="names of cuda/kernels/*.cu; all without it")
    parser.add_argument("--reports", type=pathlib.Path, default=ROOT / "build" / "ptxas")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs" / "ptxas.md")
    arguments = parser.parse_args()
    sources = sorted((ROOT / "cuda" / "kernels").glob("*.cu"))
    if arguments.kernels:
        sources = [s for s in sources if s.stem in arguments.kernels]

    rows = []
    with tempfile.TemporaryDirectory() as include:
        (pathlib.Path(include) / "norma").symlink_to(ROOT)
        for arch in arguments.arch:
            for source in sources:
                rows += parse(report_of(arguments, source, arch, include))

    names = dict(zip([r[0] for r in rows], readable([r[0] for r in rows])))
    table = {}
    for name, arch, registers, spill, stack, shared in rows:
        table.setdefault(names[name], {"shared": shared})[arch] = (registers, spill, stack)
    spilling = [k for k, v in table.items() if not RARE.search(k) and any(v[a][1] for a in arguments.arch if a in v)]

    version = subprocess.run([arguments.nvcc, "--version"], capture_output=True, text=True).stdout
    release = re.search(r"V([\d.]+)", version)[1]
    with open(arguments.output, "w") as out:
        out.write(f"# Registers of the CUDA kernels\n\nMade by `tools/ptxas_table.py` with nvcc {release}: registers of a "
                  "thread, and in brackets the bytes it spills; shared memory is of a block. "
                  "`Geometry<group, elements, vector, rows>`: threads of a row, elements of a thread, elements of an "
                  "access, rows at a time.\n\n")
        out.write(f"{len(table)} kernels; " + (f"of the main paths {len(spilling)} spill." if spilling else "no kernel of a main path spills.") + "\n\n")
        out.write("| kernel | shared memory | " + " | ".join(f"sm_{a}" for a in arguments.arch) + " |\n")
        out.write("|---|--:|" + "--:|" * len(arguments.arch) + "\n")
        for kernel in sorted(table):
            cells = []
            for arch in arguments.arch:
                registers, spill, _ = table[kernel].get(arch, ("", 0, 0))
                cells.append(f"{registers} ({spill})" if spill else f"{registers}")
            out.write(f"| `{kernel}` | {table[kernel]['shared']} | " + " | ".join(cells) + " |\n")
    for kernel in spilling:
        print(f"spills: {kernel}", file=sys.stderr)
    return 1 if spilling else 0


if __name__ == "__main__":
    sys.exit(main())
