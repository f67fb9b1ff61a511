# The front door. CMake does the work; this file installs what is missing, picks the preset and runs.
#
#   make imdb                       train the sentiment classifier on the built-in sample
#   make imdb DATA=aclImdb_v1.tar.gz ARGS="--preset imdb-nano --seed 1"
#   make lm                         train a small language model on the same
#   make test                       prove it correct
SHELL := /bin/sh
.DEFAULT_GOAL := help

PRESET ?= release
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
DATA ?=
ARGS ?=
# PACKAGES=skip leaves the system's packages alone.
PACKAGES ?= install
PYTHON ?= python3
# Where the targets that need Python packages (from PyPI) keep them; outside of the repository, kept between runs.
TORCH_VENV ?= $(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)/norma/torch

sources := git ls-files '*.h' '*.cpp' '*.cu' '*.cuh'
library_sources := git ls-files 'core/*.cpp' 'ops/*.cpp' 'nn/*.cpp' 'optim/*.cpp'

.PHONY: help
help: ## List the targets (this)
	@echo 'usage: make TARGET [DATA=archive] [ARGS="flags"] [PRESET=release|ci|debug] [JOBS=n] [PACKAGES=skip]'
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-19s %s\n", $$1, $$2}'

.PHONY: packages
packages: build/.packages
build/.packages: tools/install_packages.sh
	@mkdir -p build
ifneq ($(PACKAGES),skip)
	@tools/install_packages.sh
	@touch $@
endif

.PHONY: build
build: build/.packages ## Build everything; programs go to build/release/bin
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) --parallel $(JOBS)

.PHONY: imdb
imdb: build/.packages ## Train on movie reviews: the built-in sample, or DATA=archive; ARGS="flags" go to `imdb train`
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) --parallel $(JOBS) --target imdb
	build/$(PRESET)/bin/imdb train $(if $(DATA),--data '$(DATA)') $(ARGS)

.PHONY: lm
lm: build/.packages ## Train a language model: on the built-in sample, or DATA=text or archive; ARGS="flags" go to `lm train`
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) --parallel $(JOBS) --target lm
	build/$(PRESET)/bin/lm train $(if $(DATA),--data '$(DATA)') $(ARGS)

.PHONY: imdb-data
imdb-data: build/.packages ## Fetch and check the official IMDb archive (84 MB)
	examples/imdb/fetch_data.sh $(ARGS)

.PHONY: imdb-ablate
imdb-ablate: build/.packages ## Compare norms and placements on DATA=archive, small enough for two cores; goes on if interrupted
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) --parallel $(JOBS) --target imdb
	build/$(PRESET)/bin/imdb ablate --quick $(if $(DATA),--data '$(DATA)') $(ARGS)

EXPERIMENT ?= all
.PHONY: norm-lab
norm-lab: build/.packages ## Measure claims about norms again; the report is runs/norm_lab.html; EXPERIMENT=variance, ARGS="--seed 7"
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) --parallel $(JOBS) --target norm_lab
	build/$(PRESET)/bin/norm_lab $(EXPERIMENT) $(ARGS)

.PHONY: test
test: check asan ## Run all tests, then core, ops and cuda under AddressSanitizer and UndefinedBehaviorSanitizer

# DATA=archive lets those tests run that are skipped without the real data.
with_data := $(if $(DATA),NORMA_IMDB_DATA='$(abspath $(DATA))')

.PHONY: check
check: build ## Run all tests, without sanitizers
	$(with_data) ctest --preset $(PRESET) --parallel $(JOBS)

.PHONY: mutation-check
mutation-check: build/.packages ## Plant bugs in the norms and show that the tests catch each; ARGS="--only TEXT"
	$(PYTHON) tools/mutation_check.py --jobs $(JOBS) $(ARGS)

.PHONY: support-matrix
support-matrix: build/.packages ## Write docs/support.md: what runs on which device, as the tests find it
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) --parallel $(JOBS) --target cuda_tests
	NORMA_WRITE_SUPPORT_MATRIX=1 build/$(PRESET)/bin/cuda_tests 'the support matrix*'

.PHONY: asan
asan: build/.packages ## Run the core, ops and cuda tests under AddressSanitizer and UndefinedBehaviorSanitizer
	cmake --preset asan
	cmake --build --preset asan --parallel $(JOBS)
	ctest --preset asan --parallel $(JOBS)

.PHONY: emulate
emulate: build/.packages ## Run the core, ops and cuda tests with an emulated cuda(0) (no GPU needed)
	cmake --preset emulate
	cmake --build --preset emulate --parallel $(JOBS)
	ctest --preset emulate --parallel $(JOBS)

BENCHMARK_JSON ?= build/benchmark/results.json
.PHONY: benchmark-program
benchmark-program: build/.packages
ifneq ($(PACKAGES),skip)
	@tools/install_packages.sh libbenchmark-dev
endif
	cmake --preset benchmark
	cmake --build --preset benchmark --parallel $(JOBS)

.PHONY: benchmark
benchmark: benchmark-program ## Time operations and a training step against this machine's ceilings
	build/benchmark/bin/norma_benchmark --json $(BENCHMARK_JSON) $(ARGS)

.PHONY: benchmark-pytorch
benchmark-pytorch: benchmark-program torch-packages ## Time the same in PyTorch (from PyPI, outside of the repository)
	$(TORCH_VENV)/bin/python benchmarks/compare_pytorch.py --json build/benchmark/pytorch.json $(ARGS)

# Compiled for this machine's GPU alone, and that is asked for before the compilation, which takes half an hour.
CUDA_ARCHITECTURES ?= $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .)
.PHONY: needs-gpu gpu-programs
needs-gpu:
	@nvidia-smi -L >/dev/null 2>&1 || { echo 'this needs an NVIDIA GPU and its driver: nvidia-smi -L lists none here' >&2; exit 2; }
	@command -v nvcc >/dev/null || { echo 'this needs nvcc 13 in PATH, for example in /usr/local/cuda/bin' >&2; exit 2; }
gpu-programs: needs-gpu build/.packages
	cmake --preset cuda -DNORMA_CUDA_ARCHITECTURES=$(CUDA_ARCHITECTURES)
	cmake --build --preset cuda --parallel $(JOBS) --target gpu_norms cuda_tests

.PHONY: benchmark-gpu
benchmark-gpu: gpu-programs torch-packages ## Time the norms' CUDA kernels beside a copy and PyTorch; ARGS="--quick" for minutes
	$(TORCH_VENV)/bin/python benchmarks/gpu_norms/report.py $(ARGS)

.PHONY: gpu-check
gpu-check: gpu-programs ## Prove and measure the CUDA backend on this machine's GPU, and write one report
	$(PYTHON) tools/gpu_check.py --programs build/cuda/bin --output build/cuda/gpu_check $(ARGS)

.PHONY: bench-cpu
bench-cpu: benchmark-program torch-packages ## Hold all that is promised of the CPU against PyTorch; writes benchmarks/results/cpu.json
	$(TORCH_VENV)/bin/python benchmarks/compare_pytorch.py --all --json benchmarks/results/cpu.json $(ARGS)

.PHONY: needs-data
needs-data:
	@test -n '$(DATA)' || { echo 'this needs DATA=archive (make imdb-data fetches it)' >&2; exit 2; }

.PHONY: benchmark-imdb
benchmark-imdb: needs-data build ## Train all IMDb recipes on DATA with three seeds and hold them against their goals
	$(PYTHON) benchmarks/imdb.py --data '$(abspath $(DATA))' --program build/$(PRESET)/bin/imdb --json build/benchmark/imdb.json $(ARGS)

.PHONY: check-clients
check-clients: build client-packages ## Check files with their Python readers (from PyPI); with DATA=archive, the real data, too
	$(with_data) NORMA_PYTHON=$(TORCH_VENV)/bin/python ctest --preset $(PRESET) --label-regex outside

.PHONY: golden
golden: torch-packages ## Make tests/golden again with PyTorch (from PyPI)
	for script in tests/golden/make_*.py; do $(TORCH_VENV)/bin/python $$script || exit; done

$(TORCH_VENV)/bin/python:
ifneq ($(PACKAGES),skip)
	@tools/install_packages.sh python3 python3-venv
endif
	$(PYTHON) -m venv $(TORCH_VENV) || (rm -f $@; false)

# pip leaves what is there as it is.
.PHONY: torch-packages client-packages
torch-packages: $(TORCH_VENV)/bin/python
	$< -m pip install --quiet torch numpy safetensors
client-packages: $(TORCH_VENV)/bin/python
	$< -m pip install --quiet numpy safetensors tensorboard

.PHONY: format
format: ## Format all C++ with clang-format
ifneq ($(PACKAGES),skip)
	@tools/install_packages.sh clang-format
endif
	$(sources) | xargs clang-format -i

# clang has no omp.h of its own where only GCC is installed, so GCC's stands behind clang's headers.
.PHONY: tidy
tidy: build ## Run clang-tidy over the library
ifneq ($(PACKAGES),skip)
	@tools/install_packages.sh clang-tidy
endif
	$(library_sources) | xargs -P $(JOBS) -n 1 clang-tidy --quiet -p build/$(PRESET) \
	    --extra-arg=-idirafter --extra-arg="$$(g++ -print-file-name=include)"

.PHONY: clean
clean: ## Remove the build folder
	rm -rf build
