#!/usr/bin/env python3
"""Proves and measures the CUDA backend on a GPU, and writes one report: OUTPUT.json and OUTPUT.md.

    make gpu-check                                             # builds, then runs this
    gpu_check.py --pack FOLDER                                 # programs with their libraries, for another machine
    FOLDER/gpu_check.py --programs FOLDER --output FOLDER/report

Needs the programs gpu_norms and cuda_tests of a build with NORMA_CUDA=ON, Python's standard library, and no network.
Stages: the op table and the kernels' own tests on the GPU against the CPU; compute-sanitizer's four tools over the
kernels; two runs of which all results must have the same bits; the benchmark. Without a GPU it ends with one sentence
and status 2; with 1 where a stage fails.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")
# Under the sanitizer a kernel takes up to a hundred times as long: the smaller shapes.
SANITIZED_CASES = r"/(float32|bfloat16)/7x(128|1024|4097)$"


class Check:
    def __init__(self, arguments):
        self.programs, self.arguments, self.stages = arguments.programs, arguments, []
        libraries = [str(self.programs.resolve() / "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
        self.environment = {**os.environ, "NORMA_TEST_DEVICE": "cuda", "LD_LIBRARY_PATH": ":".join(filter(None, libraries))}

    def run(self, command):
        """(exit status, all output); 124 where it took too long."""
        try:
            done = subprocess.run([str(c) for c in command], env=self.environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=self.arguments.stage_minutes * 60)
            return done.returncode, done.stdout
        except subprocess.TimeoutExpired as late:
            return 124, (late.stdout or b"").decode(errors="replace") + "\nended: it took too long"

    def record(self, name, status, details, seconds=0.0):
        self.stages.append({"name": name, "status": status, "details": details, "seconds": round(seconds, 1)})
        print(f"{status:>8}  {name}: {details.splitlines()[0] if details else ''}", flush=True)

    def stage(self, name, command, summary):
        """Runs a program; it passes where its status is 0. `summary` makes a line of its output."""
        start = time.monotonic()
        status, output = self.run(command)
        # What CTest calls skipped is a device that the program did not find: that proves nothing.
        passed = status == 0 and "skipped: CUDA" not in output
        text = summary(output) if passed else f"status {status}\n" + "\n".join(output.splitlines()[-40:])
        self.record(name, "passed" if passed else "failed", text, time.monotonic() - start)
        return passed

    def tests(self):
        def counts(output):
            lines = re.findall(r"^(?:All tests passed.*|left out .*|.*samples skipped.*)$", output, re.M)
            return "\n".join(lines) or "passed"
        self.stage("op table on the GPU", [self.programs / "cuda_tests", "[devices]"], counts)
        self.stage("tests of the kernels", [self.programs / "cuda_tests", "~[suite]~[.]"], counts)

    def sanitizers(self):
        tool = shutil.which("compute-sanitizer")
        for name in SANITIZERS:
            if tool is None:
                self.record(f"compute-sanitizer {name}", "not run", "compute-sanitizer is not installed here")
                continue
            sanitizer = [tool, "--tool", name, "--error-exitcode", "9"]
            last = lambda output: next((line for line in reversed(output.splitlines()) if "SUMMARY" in line), "no error")
            self.stage(f"compute-sanitizer {name}: norms",
                       [*sanitizer, self.programs / "gpu_norms", "--check", "--quick", "--filter", SANITIZED_CASES], last)
            self.stage(f"compute-sanitizer {name}: all kernels",
                       [*sanitizer, self.programs / "cuda_tests", "CUDA:*"], last)

    def norms(self, *options):
        """(status, report) of a run of gpu_norms."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "norms.json"
            status, output = self.run([self.programs / "gpu_norms", "--json", file, *options])
            return status, json.loads(file.read_text()) if file.exists() else {"cases": [], "error": output}

    def determinism(self):
        start = time.monotonic()
        digests = []
        for _ in range(2):
            status, report = self.norms("--check", "--quick")
            digests.append({case["name"]: case.get("digest") for case in report["cases"]})
        different = [name for name in digests[0] if digests[0][name] != digests[1].get(name) or digests[0][name] is None]
        if different or not digests[0]:
            self.record("two runs, same bits", "failed", f"{len(different)} cases differ or failed: " + ", ".join(different[:20]),
                        time.monotonic() - start)
        else:
            self.record("two runs, same bits", "passed", f"{len(digests[0])} kernels and shapes", time.monotonic() - start)

    def benchmark(self):
        start = time.monotonic()
        status, report = self.norms(*(["--quick"] if not self.arguments.full else []))
        measured = [case for case in report["cases"] if "value" in case]
        self.record("benchmark of the norms", "passed" if status == 0 and measured else "failed",
                    f"{len(measured)} cases measured" if measured else report.get("error", "nothing was measured"),
                    time.monotonic() - start)
        return report


def pack(programs, folder):
    """Programs, the libraries they need (not the C library's own) and this script, in `folder`."""
    (folder / "lib").mkdir(parents=True, exist_ok=True)
    for name in ("gpu_norms", "cuda_tests"):
        shutil.copy2(programs / name, folder)
        for line in subprocess.run(["ldd", programs / name], capture_output=True, text=True, check=True).stdout.splitlines():
            found = re.match(r"\s*(\S+) => (/\S+)", line)
            if found and not re.match(r"(libc|libm|libdl|libpthread|librt)\.so", found[1]):
                shutil.copy2(found[2], folder / "lib" / found[1])
    shutil.copy2(__file__, folder)
    print(f"copy {folder} to a machine with a GPU and run there: gpu_check.py --programs . --output report")


def gpu():
    """What nvidia-smi says of the first GPU, or nothing."""
    fields = ("name", "driver_version", "memory.total")
    try:
        text = subprocess.run(["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"],
                              capture_output=True, text=True, check=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None
    return dict(zip(fields, map(str.strip, text.splitlines()[0].split(",")))) if text.strip() else None


def markdown(report):
    device, norms = report["gpu"], report["norms"]
    versions = norms.get("gpu", {})
    yield f"# GPU check on {device['name']}, {report['date']}"
    yield ""
    yield (f"`make gpu-check`: driver {device['driver_version']}, CUDA {versions.get('cuda_driver', '?')} (runtime "
           f"{versions.get('cuda_runtime', '?')}), {device['memory.total']}.")
    yield ""
    yield "| stage | result | seconds | |"
    yield "|---|---|--:|---|"
    for stage in report["stages"]:
        details = "; ".join(stage["details"].splitlines()[:8]).replace("|", "/")
        yield f"| {stage['name']} | {stage['status']} | {stage['seconds']} | {details} |"
    yield ""
    yield "| case | us | share of a copy |"
    yield "|---|--:|--:|"
    for case in norms["cases"]:
        if "value" in case:
            yield f"| {case['name']} | {case['microseconds']:.2f} | {100 * case['value']:.1f} % |"
        else:
            yield f"| {case['name']} | {case.get('error') or case.get('skipped', '')} | |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path("build/cuda/bin"))
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("gpu_check"), help="without .json and .md")
    parser.add_argument("--full", action="store_true", help="the whole sweep of the benchmark")
    parser.add_argument("--stage-minutes", type=float, default=60.0, help="a stage that takes longer fails")
    parser.add_argument("--pack", type=pathlib.Path, metavar="FOLDER")
    arguments = parser.parse_args()
    missing = [name for name in ("gpu_norms", "cuda_tests") if not (arguments.programs / name).exists()]
    if missing:
        sys.exit(f"gpu_check: {arguments.programs} has no {' and no '.join(missing)}; build them with NORMA_CUDA=ON")
    if arguments.pack:
        return pack(arguments.programs, arguments.pack)
    device = gpu()
    if device is None:
        print("gpu_check: this machine has no GPU that nvidia-smi lists, so nothing was checked or measured", file=sys.stderr)
        return 2
    check = Check(arguments)
    check.tests()
    check.sanitizers()
    check.determinism()
    norms = check.benchmark()
    report = {"gpu": device, "date": datetime.date.today().isoformat(), "stages": check.stages, "norms": norms}
    arguments.output.with_suffix(".json").write_text(json.dumps(report, indent=2) + "\n")
    arguments.output.with_suffix(".md").write_text("\n".join(markdown(report)) + "\n")
    failed = [stage["name"] for stage in check.stages if stage["status"] == "failed"]
    print(f"wrote {arguments.output}.json and .md; " + (f"failed: {', '.join(failed)}" if failed else "nothing failed"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
