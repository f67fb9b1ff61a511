#!/usr/bin/env python3
"""Plants bugs in the norms, one at a time, and shows that the tests catch every one.

    tools/mutation_check.py [--only TEXT] [--list] [--jobs N]

Works in a worktree of its own (build/mutation), so that the sources here stay as they are; tests the last commit. Writes
docs/mutation_check.md after a full run and exits with 1 where a bug was not caught.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TREE = ROOT / "build" / "mutation"
BUILD = TREE / "build" / "release"

ROW = "ops/cpu/norm_row.h"
KERNEL = "ops/cpu/row_norm.cpp"
COLUMN = "ops/column_norm.cpp"

# (what is wrong, file, text as it is, text with the bug, operations whose suites run)
MUTATIONS = [
    # statistics of rows
    ("eps outside of the root", ROW, "C(1) / std::sqrt(mean_square + eps)", "C(1) / (std::sqrt(mean_square) + eps)", "norm"),
    ("eps inside where it belongs outside", ROW, "EpsRule::outside ? root + eps", "EpsRule::outside ? std::sqrt(mean_square + eps)", "norm"),
    ("floor adds", ROW, ": std::max(root, eps));", ": root + eps);", "norm"),
    ("variance divided by n - 1", ROW, "reciprocal_divisor<C>(squares / n - rest * rest, p)", "reciprocal_divisor<C>(squares / (n - 1) - rest * rest, p)", "layer_norm"),
    ("mean of the whole row in pRMSNorm", ROW, "row_sum<C>(p.statistic_width, square)", "row_sum<C>(width, square)", "p_rms_norm"),
    ("CRMSNorm forgets the missing element", ROW, "(squares + sum * sum) / divisor", "squares / divisor", "crms_norm"),
    # gradient of rows
    ("mean of g not removed", ROW, "mean_g = sum_g / static_cast<C>(width);", "mean_g = C(0) * sum_g;", "layer_norm"),
    ("projection dropped", ROW, "- v * share));", "));", "norm"),
    ("projection with the wrong divisor", ROW, "sum_gh / static_cast<C>(p.divisor)", "sum_gh / (static_cast<C>(p.divisor) + 1)", "norm"),
    ("projection below eps", ROW, "r * eps < C(1) ? share : C(0)", "share", "norm"),
    ("projection of eps outside as of inside", ROW, "share / (root * r)", "share", "norm"),
    ("pRMSNorm projects all elements", ROW, "kind == RowKind::plain ? p.statistic_width : width;", "width;", "p_rms_norm"),
    ("CRMSNorm projects on x alone", ROW, "v += mean * r;", "v += C(0) * mean;", "crms_norm"),
    ("factor r forgotten", ROW, "static_cast<Out>(r * ((gradient(i)", "static_cast<Out>(((gradient(i)", "norm"),
    # gain, shift and their gradients
    ("unit offset forgotten", KERNEL, "return scale * (offset + w);", "return scale * w;", "norm"),
    ("bias not scaled", KERNEL, "return scale * b;", "return b;", "norm"),
    ("heads share the weight of the first", KERNEL, "row / repeat_ % rows_ * columns_", "0 * (row / repeat_ % rows_)", "norm"),
    ("repeat of the weight ignored", KERNEL, "row / repeat_ % rows_", "row % rows_", "norm"),
    ("order of rows of a weight", KERNEL, "(j / repeat * weight_rows + w) * repeat + j % repeat", "(j / repeat + w) * repeat + j % repeat", "norm"),
    ("Llama does not round", KERNEL, "if (p.round_normalized)", "if (false && p.round_normalized)", "norm"),
    ("AdaNorm's factor forgotten in the backward", KERNEL, "scratch[i] *= C(1) - slope *", "scratch[i] *= C(1) - C(0) * slope *", "ada_norm"),
    ("last partial sum dropped", KERNEL, "part < part_count; ++part) sum += first", "part + 1 < part_count; ++part) sum += first", "norm"),
    ("last row of a part dropped", KERNEL, "for (std::int64_t j = part * per_part; j < last; ++j)", "for (std::int64_t j = part * per_part; j + 1 < last; ++j)", "norm"),
    # fused residual
    ("alpha forgotten in the gradient", KERNEL, "static_cast<T>(alpha * t[i])", "static_cast<T>(t[i])", "add_"),
    ("gradient of the sum dropped", KERNEL, "t[i] += static_cast<C>(pdsum[first + i]);", "t[i] += C(0) * static_cast<C>(pdsum[first + i]);", "add_"),
    ("dropout not scaled in the backward", KERNEL, "kept ? t[i] * keep_scale : C(0)", "kept ? t[i] : C(0)", "add_"),
    ("dropout drops the others", "ops/cpu/dropout_row.h", ">= threshold", "< threshold", "add_"),
    ("dual norm forgets the second gradient", "ops/cpu/dual_norm.cpp", "* pg1[i] + static_cast<C>(rdy2[i]) * pg2[i]", "* pg1[i] + C(0) * static_cast<C>(rdy2[i]) * pg2[i]", "dual_"),
    # other kernels
    ("PolyNorm: power rule", "ops/cpu/poly_norm.cpp", "a0 = 3 * w0 * r0", "a0 = 2 * w0 * r0", "poly_norm"),
    ("PolyNorm: wrong statistic", "ops/cpu/poly_norm.cpp", "std::sqrt(sum4 / n + e)", "std::sqrt(sum2 / n + e)", "poly_norm"),
    ("derivative of tanh", "ops/cpu/squash.cpp", "return C(1) - t * t;", "return C(1) - t;", "dynamic_tanh"),
    ("derivative of erf", "ops/cpu/squash.cpp", "vec::exp(-z * z)", "vec::exp(-z)", "dynamic_erf"),
    ("alpha forgotten in dx", "ops/cpu/squash.cpp", "static_cast<T>(a * inner(i))", "static_cast<T>(inner(i))", "dynamic_"),
    ("soft cap: derivative", "ops/cpu/squash.cpp", "static_cast<C>(pdy[i]) * (C(1) - t * t)", "static_cast<C>(pdy[i]) * (C(1) - t)", "softcap"),
    # channels
    ("padding counts", "ops/cpu/column_norm.cpp", "if (mask != nullptr && mask[o]) continue;", "", "batch_norm"),
    ("padding gets the mean's gradient", COLUMN, "backend(x).column_affine(view, mask, mean, dy_view", "backend(x).column_affine(view, Tensor(), mean, dy_view", "batch_norm"),
    ("BatchNorm: projection without r squared", COLUMN, "a * square(rstd) * sum_dy_d / n", "a * rstd * sum_dy_d / n", "batch_norm"),
    ("BatchNorm: mean of dy not removed", COLUMN, "Tensor c = neg(a * sum_dy / n);", "Tensor c = zeros_like(a);", "batch_norm"),
    ("penalty's gradient of the variance", COLUMN, "b + 2.0 * dvariance / n", "b + dvariance / n", "batch_norm"),
    ("clamped variance has a gradient", COLUMN, "if (call.clamp_variance) b =", "if (false) b =", "batch_norm"),
    ("running variance is the biased one", "ops/batch_norm.cpp", "out[2].detach() * bessel(out[3])", "out[2].detach()", "batch_norm"),
    ("PowerNorm forgets the leak", "ops/power_norm.cpp", "neg(leak * scale * batch_scale)", "zeros_like(scale)", "power_norm"),
    ("PowerNorm uses running phi in the warm-up", "ops/power_norm.cpp", "step <= options.warmup_steps ? phi : running", "step < options.warmup_steps ? phi : running", "power_norm"),
    ("spectral norm iterates once more", "ops/weight_norm.cpp", "i < n_power_iterations; ++i", "i <= n_power_iterations; ++i", "spectral_norm"),
]


def run(command, **options):
    return subprocess.run(command, cwd=TREE, capture_output=True, text=True, **options)


def build(jobs):
    result = run(["cmake", "--build", str(BUILD), "--target", "ops_tests", "--parallel", str(jobs)])
    if result.returncode != 0:
        sys.exit("does not compile:\n" + (result.stdout + result.stderr)[-3000:])


def caught_by(operations):
    """The tests that fail first, or None."""
    program = str(BUILD / "bin" / "ops_tests")
    environment = {**os.environ, "NORMA_TEST_OPS": operations}
    for tests in ["~[suite]", "gradcheck of every operation", "every operation agrees*", "[suite]"]:
        result = run([program, tests, "--abort"], env=environment)
        if result.returncode != 0:
            lines = [line.strip() for line in result.stdout.splitlines()]
            ruler = next((i for i, line in enumerate(lines) if len(line) > 60 and set(line) == {"-"}), None)
            return lines[ruler + 1] if ruler is not None else tests
    return None


def check_texts():
    for title, path, old, new, _ in MUTATIONS:
        count = (ROOT / path).read_text().count(old)
        if count != 1 or old == new:
            sys.exit(f"{title}: the text stands {count} times in {path}; it must stand there once")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="bugs with this text in their title")
    parser.add_argument("--list", action="store_true", help="list the bugs and check that their texts are there")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    check_texts()
    chosen = [m for m in MUTATIONS if arguments.only in m[0]]
    if arguments.list:
        for title, path, *_ in chosen:
            print(f"{path}: {title}")
        return
    if not TREE.exists():
        subprocess.run(["git", "worktree", "add", "--detach", str(TREE), "HEAD"], cwd=ROOT, check=True)
    subprocess.run(["git", "checkout", "--quiet", "--force", "--detach",
                    subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()],
                   cwd=TREE, check=True)
    configured = run(["cmake", "--preset", "release", "-DNORMA_TEST_SUITES=ops", "-DNORMA_BUILD_EXAMPLES=OFF"])
    if configured.returncode != 0:
        sys.exit(configured.stderr)
    build(arguments.jobs)
    if failed := caught_by("norm"):
        sys.exit(f"the tests fail without any bug: {failed}")
    rows = []
    for title, path, old, new, operations in chosen:
        file = TREE / path
        sound = file.read_text()
        started = time.time()
        try:
            file.write_text(sound.replace(old, new))
            build(arguments.jobs)
            caught = caught_by(operations)
        finally:
            file.write_text(sound)
        rows.append((title, path, caught or "**nothing**"))
        print(f"{'caught' if caught else 'MISSED'} {title}: {caught or ''} ({time.time() - started:.0f} s)", flush=True)
    missed = sum(row[2] == "**nothing**" for row in rows)
    if not arguments.only:
        text = "# Planted bugs\n\nWhat catches each bug that `make mutation-check` plants.\n\n| Bug | File | First test that fails |\n|---|---|---|\n"
        text += "".join(f"| {title} | {path} | {caught} |\n" for title, path, caught in rows)
        (ROOT / "docs" / "mutation_check.md").write_text(text)
    print(f"{len(rows) - missed} of {len(rows)} caught")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
