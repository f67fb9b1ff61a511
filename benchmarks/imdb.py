#!/usr/bin/env python3
"""Trains the recipes of examples/imdb on the real data and holds them against their goals.

    benchmarks/imdb.py --data data/aclImdb_v1.tar.gz            all recipes, seeds 1 to 3: half an hour on two cores
    benchmarks/imdb.py --data ... --only imdb-nano --seeds 1

JSON (--json): a list of {name, value, unit, goal, holds}; accuracies are fractions, times the whole run in seconds.
Needs nothing but Python's standard library.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

# Name: arguments, least accuracy of a seed, least mean, longest run in seconds.
RECIPES = {
    "imdb-nano": (["train", "--preset", "imdb-nano"], 0.850, None, 120),
    "imdb-tiny": (["train"], 0.875, 0.879, 600),
    "imdb-tiny-bigram": (["train", "--bigram"], 0.899, 0.902, 600),
    "baseline": (["baseline"], 0.910, None, 60),
}


def at_least(name, value, bound):
    return {"name": name, "value": value, "unit": "fraction", "goal": bound, "holds": value >= bound}


def at_most(name, seconds, bound):
    return {"name": name, "value": seconds, "unit": "s", "goal": bound, "holds": seconds <= bound}


def run(program, arguments, folder):
    """The metrics of one run; one that is already there is taken as it is."""
    metrics = folder / "metrics.json"
    if not metrics.exists():
        subprocess.run([program, *arguments, "--out", str(folder)], check=True, stdout=sys.stderr)
    return json.loads(metrics.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="aclImdb_v1.tar.gz")
    parser.add_argument("--program", default="build/release/bin/imdb")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", choices=RECIPES, help="one recipe")
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path("build/benchmark/imdb"), help="folder of the runs")
    parser.add_argument("--json", type=pathlib.Path, help="write the results here")
    options = parser.parse_args()
    if not pathlib.Path(options.data).exists():
        parser.error(f"--data: {options.data!r} does not exist")

    results = []
    print("| recipe | seed | dev | test | in all | tokens/s | peak memory | revision | processor |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, (arguments, least, least_mean, longest) in RECIPES.items():
        if options.only not in (None, name):
            continue
        accuracies = []
        for seed in options.seeds:
            m = run(options.program, [*arguments, "--data", options.data, "--seed", str(seed)],
                    options.runs / f"{name}-seed{seed}")
            accuracies.append(m["test_accuracy"])
            percent = lambda key: f"{100 * m[key]:.2f} %" if m.get(key) is not None else ""
            print(f"| {name} | {seed} | {percent('dev_accuracy')} | {percent('test_accuracy')} | {m['total_seconds']:.0f} s "
                  f"| {m.get('tokens_per_second', 0) / 1e3:.0f}k | {m.get('peak_memory_bytes', 0) / 2**20:.0f} MiB "
                  f"| {m.get('git_revision', '')} | {os.cpu_count()} x {m.get('processor', '')} |", flush=True)
            results.append(at_least(f"{name}/seed{seed}/test_accuracy", m["test_accuracy"], least))
            results.append(at_most(f"{name}/seed{seed}/total_seconds", m["total_seconds"], longest))
        if least_mean is not None and len(accuracies) > 1:
            results.append(at_least(f"{name}/mean_test_accuracy", statistics.mean(accuracies), least_mean))

    print()
    for row in results:
        print(f"{'holds ' if row['holds'] else 'MISSED'} {row['name']}: {row['value']:.4g} {row['unit']}, goal {row['goal']}")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
