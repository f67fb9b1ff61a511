#!/usr/bin/env python3
"""Plants bugs in the norms, one at a time, and shows that the tests catch every one.

    tools/mutation_check.py [--only TEXT] [--list] [--jobs N]

All bugs are compiled into one program, each behind `norma_mutant == its number`, and the environment variable
NORMA_MUTANT picks the one that is on: one build, and then as many runs as there are bugs. Works in a worktree of its own
(build/mutation) of the last commit, so that the sources here stay as they are. Writes docs/mutation_check.md after a
full run and exits with 1 where a bug was not caught.
"""

import argparse
import concurrent.futures
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
COLUMNS = "ops/cpu/column_norm.cpp"
SQUASH = "ops/cpu/squash.cpp"
POLY = "ops/cpu/poly_norm.cpp"
BF16 = "static_cast<C>(static_cast<BFloat16>({}))"

# What is wrong, file, the text «with the expression» that is replaced, the expression with the bug, and the operations
# whose suites run.
MUTATIONS = [
    # statistics of rows
    ("eps outside of the root", ROW, "EpsRule::inside) return «C(1) / std::sqrt(mean_square + eps)»;", "C(1) / (std::sqrt(mean_square) + eps)", "norm"),
    ("eps inside where it belongs outside", ROW, "EpsRule::outside ? «root + eps» :", "std::sqrt(mean_square + eps)", "norm"),
    ("floor adds", ROW, "root + eps : «std::max(root, eps)»)", "root + eps", "norm"),
    ("variance divided by n - 1", ROW, "std::max(«share * squares» - rest * rest", "squares / static_cast<C>(width - 1)", "layer_norm"),
    ("mean of the whole row in pRMSNorm", ROW, "row_sum<C>(«p.statistic_width», square_of(value))", "width", "p_rms_norm"),
    ("CRMSNorm forgets the missing element", ROW, "share * «(squares + sum * sum)»}", "squares", "crms_norm"),
    ("mean rounded to bfloat16", ROW, "return {«centre», rest, std::max", BF16.format("centre"), "layer_norm"),
    ("error of the estimated mean left in the variance", ROW, "share * squares - «rest * rest», C(0)", "C(0)", "layer_norm"),
    ("error of the estimated mean left in the row", KERNEL, "rest[k] = «statistics[k].rest * rstd[k]»;", "C(0)", "layer_norm"),
    ("second row of two stored with the statistics of the first", KERNEL, "rstd[k] = «statistics[k].rstd»;", "statistics[0].rstd", "norm"),
    ("what no vector holds at the end of a row dropped", "ops/cpu/row.h", "for (; «i < count»; ++i) rest = combine", "false", "norm"),
    # gradient of rows
    ("mean of g not removed", ROW, "return {«sum_g / static_cast<C>(width)», projection<C>(sum_gh", "C(0)", "layer_norm"),
    ("projection dropped", ROW, "- mean_g) - v * «share»));", "C(0)", "norm"),
    ("projection with the wrong divisor", ROW, "share = sum_gh / «static_cast<C>(p.divisor)»;", "(static_cast<C>(p.divisor) + 1)", "norm"),
    ("projection below eps", ROW, "EpsRule::floor) return «r * eps < C(1) ? share : C(0)»;", "share", "norm"),
    ("projection of eps outside as of inside", ROW, "root > C(0) ? «share / (root * r)» :", "share", "norm"),
    ("pRMSNorm projects all elements", ROW, "projected = «kind == RowKind::plain ? p.statistic_width : width»;", "width", "p_rms_norm"),
    ("CRMSNorm projects on x alone", ROW, "v += «mean * r»;", "C(0)", "crms_norm"),
    ("factor r forgotten", ROW, "out[i] = static_cast<Out>(«r» * ((gradient(i)", "C(1)", "norm"),
    ("mean of g not removed from rows taken together", KERNEL, "centred ? «sums.mean_g» : C(0);", "C(0)", "layer_norm"),
    ("projection dropped from rows taken together", KERNEL, "mean_g) - h * «sums.share»)", "C(0)", "norm"),
    ("weight gradient of the second row of two dropped", KERNEL, "weight_sum += d * «h»;", "(k == 1 ? C(0) : h)", "norm"),
    ("last row of an odd number dropped", KERNEL, "if («k < count»)\n      finish_rows<kind, 1>", "false", "norm"),
    # gain, shift and their gradients
    ("unit offset forgotten", KERNEL, "return scale * «(offset + w)»;", "w", "norm"),
    ("bias not scaled", KERNEL, "return «scale * b»;", "b", "norm"),
    ("weights rounded early, to bfloat16", KERNEL, "by_kind([dy, pg](std::int64_t i) { return static_cast<C>(dy[i]) * «pg[i]»; }", BF16.format("pg[i]"), "norm"),
    ("heads share the weight of the first", KERNEL, "rows_ == 1 ? 0 : «row / repeat_ % rows_ * columns_»;", "std::int64_t{0}", "norm"),
    ("repeat of the weight ignored", KERNEL, "? 0 : «row / repeat_» % rows_", "row", "norm"),
    ("order of rows of a weight", KERNEL, "return «(j / repeat * weight_rows + w)» * repeat", "(j / repeat + w)", "norm"),
    ("Llama does not round", KERNEL, "if («p.round_normalized»)", "false", "norm"),
    ("AdaNorm's factor forgotten in the backward", KERNEL, "scratch[i] *= C(1) - «slope» *", "C(0)", "ada_norm"),
    ("partial sums in bfloat16", KERNEL, "sum += «first[part * columns]»;", BF16.format("first[part * columns]"), "norm"),
    ("last partial sum dropped", KERNEL, "«part < part_count»; ++part) sum += first", "part + 1 < part_count", "norm"),
    ("last row of a part dropped", KERNEL, "j = part * per_part; «j < last»; ++j)", "j + 1 < last", "norm"),
    # fused residual
    ("alpha forgotten in the gradient", KERNEL, "static_cast<T>(«alpha * t[i]»)", "t[i]", "add_"),
    ("gradient of the sum dropped", KERNEL, "t[i] += «static_cast<C>(pdsum[first + i])»;", "C(0)", "add_"),
    ("dropout not scaled in the backward", KERNEL, "kept ? «t[i] * keep_scale» : C(0)", "t[i]", "add_"),
    ("dropout drops the others", "ops/cpu/dropout_row.h", "«(words[i - base] >> 8) >= threshold»", "(words[i - base] >> 8) < threshold", "add_"),
    ("dual norm forgets the second gradient", "ops/cpu/dual_norm.cpp", "* pg1[i] + «static_cast<C>(rdy2[i]) * pg2[i]»;", "C(0)", "dual_"),
    # other kernels
    ("PolyNorm: power rule", POLY, "a0 = «3 * w0 * r0»,", "2 * w0 * r0", "poly_norm"),
    ("PolyNorm: wrong statistic", POLY, "std::sqrt(«sum4 / n + e»)", "sum2 / n + e", "poly_norm"),
    ("derivative of tanh", SQUASH, "return C(1) - «t * t»;", "t", "dynamic_tanh"),
    ("derivative of erf", SQUASH, "VecMath::exp(«-z * z»)", "-z", "dynamic_erf"),
    ("alpha forgotten in dx", SQUASH, "static_cast<T>(«a * inner(i)»)", "inner(i)", "dynamic_"),
    ("soft cap: derivative", SQUASH, "static_cast<C>(pdy[i]) * (C(1) - «t * t»)", "t", "softcap"),
    # channels
    ("padding counts", COLUMNS, "if («mask != nullptr && mask[o]») continue;", "false", "batch_norm"),
    ("padding gets the mean's gradient", COLUMN, "column_affine(view, «mask», mean, dy_view", "Tensor()", "batch_norm"),
    ("BatchNorm: projection without r squared", COLUMN, "neg(a * «square(rstd)» * sum_dy_d / n)", "rstd", "batch_norm"),
    ("BatchNorm: mean of dy not removed", COLUMN, "Tensor c = «neg(a * sum_dy / n)»;", "zeros_like(a)", "batch_norm"),
    ("penalty's gradient of the variance", COLUMN, "b = b + «2.0 * dvariance / n»;", "dvariance / n", "batch_norm"),
    ("clamped variance has a gradient", COLUMN, "if («call.clamp_variance») b =", "false", "batch_norm"),
    ("running variance is the biased one", "ops/batch_norm.cpp", "move_running(call.running_var, «out[2].detach() * bessel(out[3])»", "out[2].detach()", "batch_norm"),
    ("PowerNorm forgets the leak", "ops/power_norm.cpp", "«neg(leak * scale * batch_scale)»", "zeros_like(scale)", "power_norm"),
    ("PowerNorm uses running phi in the warm-up", "ops/power_norm.cpp", "«step <= options.warmup_steps» ? phi : running", "step < options.warmup_steps", "power_norm"),
    ("spectral norm iterates once more", "ops/weight_norm.cpp", "«i < n_power_iterations»; ++i", "i <= n_power_iterations", "spectral_norm"),
]

# The same of the CUDA kernels, which run in the emulator; the last field names tests of cuda_tests.
ROW_TESTS = "CUDA: every option of the row norms,CUDA: norms*,CUDA: the variance*,CUDA: LayerNorm*"
SUMS = "cuda/kernels/sums.cuh"
FORWARD = "cuda/kernels/row_norm_forward.cuh"
BACKWARD = "cuda/kernels/row_norm_backward.cuh"
REDUCE = "cuda/kernels/reduce.cuh"
CUDA_MUTATIONS = [
    ("CUDA: no barrier in the sum of a block", REDUCE, "area[i * warps + static_cast<int>(threadIdx.x) / warp_size] = values[i];\n      }\n      «__syncthreads()»;", "void()", ROW_TESTS),
    ("CUDA: one scratch area instead of two", REDUCE, "turn_ ^= «1»;", "0", ROW_TESTS),
    ("CUDA: half of the warp in the mask", REDUCE, "__shfl_xor_sync(«all_lanes», value, step)", "0xffffu", ROW_TESTS),
    ("CUDA: half of the lanes not summed", REDUCE, "step = «lanes / 2»; step > 0; step /= 2)\n      value = Op::combine", "lanes / 4", ROW_TESTS),
    ("CUDA: partial sums in bfloat16", SUMS, "sum += «parts[(w * count + part) * width + column]»;", BF16.format("parts[(w * count + part) * width + column]"), ROW_TESTS),
    ("CUDA: no barrier between the warps of a sum", SUMS, "threadIdx.x] = sum;\n  «__syncthreads()»;", "void()", ROW_TESTS),
    ("CUDA: no barrier in the column sums", BACKWARD, "bias_scratch[slot] = bias_sum;\n  «__syncthreads()»;", "void()", ROW_TESTS),
    ("CUDA: last row of a part dropped", BACKWARD, "j = begin + threadIdx.y; «j < end»; j += tile_rows", "j + 1 < end", ROW_TESTS),
    ("CUDA: mean of g not removed", BACKWARD, "return {«sums[1] / static_cast<C>(width)», projection", "C(0)", ROW_TESTS),
    ("CUDA: projection dropped", BACKWARD, "- row.mean_g) - «h * row.share»)", "C(0)", ROW_TESTS),
    ("CUDA: rows behind the last count", BACKWARD, "rstd[k] = active ? a.rstd[row] : C(0);\n    }\n    NORMA_UNROLL\n    for (int k = 0; k < G::rows; ++k) {\n      const std::int64_t row = base + k * G::groups + place.group;\n      const bool active = «row < a.shape.rows»;", "row <= a.shape.rows", ROW_TESTS),
    ("CUDA: gradient of the sum forgotten", BACKWARD, "if (a.dsum != nullptr) t += «convert<C>(dsum.vectors[v][e])»;", "C(0)", ROW_TESTS),
    ("CUDA: alpha forgotten in the gradient", BACKWARD, "dresidual[e] = convert<T>(«alpha * t»);", "t", ROW_TESTS),
    ("CUDA: rest of the mean ignored", FORWARD, "d = (d - centre) - «s.rest»;", "C(0)", ROW_TESTS),
    ("CUDA: rest of the mean of a streamed row ignored", FORWARD, "- centre) - «s.rest») * s.rstd", "C(0)", ROW_TESTS),
    ("CUDA: variance of a streamed row with the wrong divisor", FORWARD, "reciprocal_divisor<C>(«all.m2 / static_cast<C>(width)», p)", "all.m2 / static_cast<C>(width - 1)", ROW_TESTS),
    ("CUDA: last column left out", FORWARD, "column = threadIdx.x; «column < width»; column += threads", "column + 1 < width", ROW_TESTS),
    ("CUDA: dual norm without projection", "cuda/kernels/dual_norm.cu", "- of_row.mean_g) - «h * of_row.share»);", "C(0)", "CUDA: the dual norm*,CUDA: every option of the dual norm"),
    ("CUDA: derivative of tanh", "cuda/kernels/squash.cu", "return C(1) - «value * value»;", "value", "CUDA: DyT*,CUDA: every option of the element-wise norms"),
]


def read_expression(text):
    before, rest = text.split("«")
    expression, after = rest.split("»")
    return before, expression, after


def check_texts(mutations):
    for title, path, text, bug, _ in mutations:
        before, expression, after = read_expression(text)
        count = (ROOT / path).read_text().count(before + expression + after)
        if count != 1 or expression == bug:
            sys.exit(f"{title}: the text stands {count} times in {path}; it must stand there once")


def planted(source, mutations):
    """`source` with all bugs; [(number, text, bug)]. An expression may lie inside of another."""
    spans = []
    for number, text, bug in mutations:
        before, expression, after = read_expression(text)
        start = source.index(before + expression + after) + len(before)
        spans.append((start, start + len(expression), number, bug))
    # The largest first: what is inside of it comes behind it, and moves along.
    spans.sort(key=lambda span: (span[0], -span[1]))

    def render(start, end, inside):
        text, position = "", start
        while inside:
            first, last, number, bug = inside[0]
            nested = [span for span in inside[1:] if span[1] <= last]
            inside = [span for span in inside[1:] if span[1] > last]
            text += source[position:first] + f"(norma_mutant == {number} ? ({bug}) : ({render(first, last, nested)}))"
            position = last
        return text + source[position:end]

    return render(0, len(source), spans)


def run(command, **options):
    return subprocess.run(command, cwd=TREE, capture_output=True, text=True, **options)


SWITCH = """// Which planted bug is on (tools/mutation_check.py).
#pragma once
#include <cstdlib>
inline const int norma_mutant = [] {
  const char* const number = std::getenv("NORMA_MUTANT");
  return number == nullptr ? -1 : std::atoi(number);
}();
"""


def plant(mutations):
    (TREE / "core" / "mutant.h").write_text(SWITCH)
    by_file = {}
    for number, (_, path, text, bug, _) in enumerate(mutations):
        by_file.setdefault(path, []).append((number, text, bug))
    for path, bugs in by_file.items():
        sound = (TREE / path).read_text()
        (TREE / path).write_text('#include "norma/core/mutant.h"\n#include "norma/core/half.h"\n' + planted(sound, bugs))


def build(jobs):
    configured = run(["cmake", "--preset", "release", "-DNORMA_TEST_SUITES=ops;cuda", "-DNORMA_BUILD_EXAMPLES=OFF", "-DNORMA_CUDA=OFF"])
    if configured.returncode != 0:
        sys.exit(configured.stdout + configured.stderr)
    result = run(["cmake", "--build", str(BUILD), "--target", "ops_tests", "cuda_tests", "--parallel", str(jobs)])
    if result.returncode != 0:
        sys.exit("does not compile:\n" + (result.stdout + result.stderr)[-5000:])


def caught_by(number, which):
    """The test that fails first, or None."""
    environment = {**os.environ, "NORMA_MUTANT": str(number), "OMP_WAIT_POLICY": "passive"}
    if which.startswith("CUDA"):
        commands = [["cuda_tests", which, "--abort"]]
    else:
        environment["NORMA_TEST_OPS"] = which
        # The quick ones first.
        tests = ["gradcheck of every operation", "every operation agrees*", "~[suite]", "norms of*", "[suite]"]
        commands = [["ops_tests", test, "--abort"] for test in tests]
    for program, test, abort in commands:
        try:
            result = run([str(BUILD / "bin" / program), test, abort], env=environment, timeout=1800)
        except subprocess.TimeoutExpired:
            return f"{test} (does not end)"
        if result.returncode != 0:
            lines = [line.strip() for line in result.stdout.splitlines()]
            ruler = next((i for i, line in enumerate(lines) if len(line) > 60 and set(line) == {"-"}), None)
            return lines[ruler + 1] if ruler is not None else f"{test} (ends with {result.returncode})"
    return None


def write_table(rows):
    text = "# Planted bugs\n\nWhat catches each bug that `make mutation-check` plants: the first test that fails.\n\n"
    text += "| Bug | File | Text | With the bug | Caught by |\n|---|---|---|---|---|\n"
    code = lambda t: "`" + t.replace("\n", " ").replace("|", "\\|") + "`"
    for title, path, text_in_file, bug, caught in rows:
        expression = read_expression(text_in_file)[1]
        text += f"| {title} | {path} | {code(expression)} | {code(bug)} | {caught} |\n"
    (ROOT / "docs" / "mutation_check.md").write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="bugs with this text in their title")
    parser.add_argument("--list", action="store_true", help="list the bugs and check that their texts are there")
    parser.add_argument("--jobs", type=int, default=2, help="for the build, and runs at a time")
    arguments = parser.parse_args()
    mutations = MUTATIONS + CUDA_MUTATIONS
    check_texts(mutations)
    chosen = [i for i, m in enumerate(mutations) if arguments.only in m[0]]
    if arguments.list:
        for i in chosen:
            print(f"{mutations[i][1]}: {mutations[i][0]}")
        return
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    if not TREE.exists():
        subprocess.run(["git", "worktree", "add", "--detach", str(TREE), head], cwd=ROOT, check=True)
    subprocess.run(["git", "checkout", "--quiet", "--force", "--detach", head], cwd=TREE, check=True)
    plant(mutations)
    build(arguments.jobs)
    for which in sorted({mutations[i][4] for i in chosen}):
        if failed := caught_by(-1, which):
            sys.exit(f"the tests of {which} fail without any bug: {failed}")

    def try_out(number):
        started = time.time()
        caught = caught_by(number, mutations[number][4])
        print(f"{'caught' if caught else 'MISSED'} {mutations[number][0]}: {caught or ''} ({time.time() - started:.0f} s)", flush=True)
        return caught

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        caught = list(pool.map(try_out, chosen))
    missed = caught.count(None)
    if not arguments.only:
        write_table([(*mutations[i][:4], c or "**nothing**") for i, c in zip(chosen, caught)])
    print(f"{len(chosen) - missed} of {len(chosen)} caught")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
