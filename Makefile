# Everything from a fresh checkout, with nothing but make and Python 3.11 to 3.13: `make demo`, `make test`.
# PYTHON=/path/to/python3 chooses another than the newest that is found.

export PYTHON
BIN := .venv/bin
SETUP := pyproject.toml tools/setup.py
JOBS ?= 2
FOLDER ?= output/models

# Mesa without compute shaders: what a GL 3.3 driver, or macOS, leaves to the pixel backend.
GL33 := MESA_GL_VERSION_OVERRIDE=3.3 MESA_GLSL_VERSION_OVERRIDE=330 PERFRAME_BACKENDS=gpu_pixel

# Both GL backends, without the CPU; and where their shaders are kept for the compilers of other drivers.
GL_TESTS := PERFRAME_BACKENDS=gpu_compute,gpu_pixel
SHADERS := output/shaders

.PHONY: help demo test test-all check lint pytest test-gl33 test-gl41 test-guarded test-drivers check-targets fuzz fuzz-graphs fuzz-night soak check-wheel bench bench-shaders models sweep pictures site wheel release clean

help: ## what can be made
	@grep -E '^[a-z0-9-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

demo: .venv/.demo ## the painter: a window where there is a display, a picture where there is none
	@$(BIN)/perframe demo painter $(ARGS)

test: check ## the fast checks, and the quick tests: every family on every backend (a minute and a half, the first time five)
	$(BIN)/pytest --quick -n $(JOBS) $(ARGS)

test-all: .venv/.all lint pytest ## all checks and all tests, as CI runs them: installs PyTorch and Ray (half an hour)

lint: check ## ruff, mypy, import-linter, and the programs of pages and demos by mypy and pyright
	$(BIN)/python tools/check_programs.py

check: .venv/.dev ## ruff, mypy, import-linter
	$(BIN)/ruff check
	$(BIN)/ruff check --preview --select PLW1514 # text files without an encoding: Windows' is not UTF-8
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo

pytest: .venv/.dev ## all tests alone; ARGS="-k pool"
	$(BIN)/pytest -n $(JOBS) $(ARGS)

test-gl33: .venv/.dev ## the pixel backend's tests on a GL 3.3 context, without the slow ones
	$(GL33) $(BIN)/pytest -n $(JOBS) -m "backend and not slow" $(ARGS)

# The pixel backend as macOS has it: GL 4.1, core and forward compatible.
GL41 := MESA_GL_VERSION_OVERRIDE=4.1FC PERFRAME_BACKENDS=gpu_pixel

test-gl41: .venv/.dev ## the pixel backend's tests on GL 4.1, forward compatible, as macOS has it, and its shaders by the rules of GLSL 3.30
	rm -rf $(SHADERS)
	$(GL41) $(BIN)/pytest -n $(JOBS) -m "backend or gl" tests/gl $(ARGS)
	$(GL41) PYTHONPATH=tools PERFRAME_SHADERS=$(abspath $(SHADERS)) $(BIN)/pytest -n $(JOBS) -p shader_texts -m backend \
		tests/layers tests/textures $(ARGS)
	$(BIN)/python tools/glsl_rules.py $(SHADERS)

test-drivers: .venv/.dev ## every shader on the compilers of nine drivers, GPUs' among them; the GL tests on Zink and Mesa 25
	rm -rf $(SHADERS)
	$(GL_TESTS) PYTHONPATH=tools PERFRAME_SHADERS=$(abspath $(SHADERS)) $(BIN)/pytest -n $(JOBS) -p shader_texts -m "backend or gl" \
		tests/layers tests/textures tests/gl/test_long_rows.py tests/execution/test_tuning.py $(ARGS)
	$(BIN)/python tools/drivers.py compile $(SHADERS)
	for driver in zink llvmpipe25; do \
		$(GL_TESTS) $(BIN)/python tools/drivers.py run $$driver \
			$(BIN)/pytest -n $(JOBS) -m "backend or gl" tests/gl tests/layers $(ARGS) || exit 1; \
	done

check-targets: .venv/.dev ## every CPU kernel as Windows, macOS and arm64 get it; the objects are read and not run (half an hour)
	$(BIN)/python tools/targets.py --all

test-arm64: .venv/.dev ## the CPU's tests on an emulated arm64 processor, as root (hours); ARGS="-k pool"
	$(BIN)/python tools/arm64.py pytest -n $(JOBS) tests/layers tests/cpu $(ARGS)

test-guarded: .venv/.dev ## the CPU's tests of layers, and mutated models, with values between pages that may not be touched
	PERFRAME_GUARD=behind PERFRAME_BACKENDS=cpu $(BIN)/pytest -n $(JOBS) tests/layers tests/fuzz $(ARGS)
	PERFRAME_GUARD=before PERFRAME_BACKENDS=cpu $(BIN)/pytest --quick -n $(JOBS) tests/layers $(ARGS)

fuzz: .venv/.dev ## mutated models, and what becomes of them; N=100000 SEED=1 ARGS="--backend gpu_pixel --save FOLDER"
	$(BIN)/python -m tests.fuzz --count $(or $(N),10000) --seed $(or $(SEED),0) --jobs $(JOBS) $(ARGS)

fuzz-graphs: .venv/.dev ## random valid graphs against onnxruntime; N=10000 SEED=1 ARGS="--backend gpu_pixel --save FOLDER"
	$(BIN)/python -m tests.fuzz --graphs --count $(or $(N),1000) --seed $(or $(SEED),0) --jobs $(JOBS) $(ARGS)

fuzz-night: .venv/.dev ## a night of random graphs on all backends, and mutated models; SEED=DATE
	$(BIN)/python -m tests.fuzz --graphs --count 50000 --seed $(or $(SEED),0) --jobs $(JOBS) --backend numpy,numpy:gpu_compute --save output/fuzz
	$(BIN)/python -m tests.fuzz --graphs --count 20000 --seed $(or $(SEED),0) --jobs $(JOBS) --backend cpu --save output/fuzz
	$(BIN)/python -m tests.fuzz --graphs --count 5000 --seed $(or $(SEED),0) --jobs $(JOBS) --backend gpu_compute,gpu_pixel --save output/fuzz
	$(BIN)/python -m tests.fuzz --count 50000 --seed $(or $(SEED),0) --jobs $(JOBS) --save output/fuzz

pictures: .venv/.dev ## docs/pictures: each demo as a moving picture, and the hero; ARGS="life digits"
	$(BIN)/python tools/moving_pictures.py $(ARGS)

site: .venv/.dev ## the documentation as pages in output/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

check-wheel: .venv/.dev ## the wheel, in a clean environment
	$(BIN)/pytest -m wheel

bench: .venv/.dev ## perframe and onnxruntime side by side; ARGS="mnist-12 --rounds 20"
	$(BIN)/perframe bench $(or $(ARGS),light_squeezenet --backend cpu,gpu_compute,gpu_pixel --against onnxruntime)

bench-shaders: .venv/.dev ## the GPU backends, ncnn on Vulkan and onnxruntime's WebGPU side by side; ARGS="--models mnist-12"
	$(BIN)/python -m tests.benchmarks.shaders $(ARGS)

soak: .venv/.dev ## ten thousand frames, hundreds of workers and shapes, and what they leave; ARGS="-k frames"
	PERFRAME_SOAK=full $(BIN)/pytest tests/soak -rP $(ARGS)

models: .venv/.zoo ## the tests' architectures as ONNX files in FOLDER (output/models); ARGS="bert resnet"
	PYTHONPATH=tests $(BIN)/python -m models.architectures.exporting $(FOLDER) $(ARGS)

sweep: .venv/.dev ## all models of FOLDER on all backends against onnxruntime; ARGS="--backend cpu"
	$(BIN)/python tools/sweep.py $(FOLDER) $(ARGS)

wheel: .venv/.dev ## dist/perframe-*.whl with compiled kernels for this system (minutes the first time; needs a C compiler)
	$(BIN)/python tools/kernel_library.py build --wheel dist $(ARGS)

release: .venv/.dev ## the files of a release in dist, tried on each Python that is here; nothing is uploaded
	$(BIN)/python -m pip install --quiet --editable '.[release]'
	$(BIN)/python tools/release.py

clean: ## all that was made, the environment too
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Packages are looked at again only when pyproject.toml changes: the second run starts at once.
.venv/.demo: $(SETUP)
	@python=$$(sh tools/find_python.sh) && "$$python" tools/setup.py demos && touch $@

.venv/.dev: $(SETUP)
	@python=$$(sh tools/find_python.sh) && "$$python" tools/setup.py dev && touch $@
	@touch .venv/.demo

.venv/.zoo: $(SETUP) .venv/.dev
	@python=$$(sh tools/find_python.sh) && "$$python" tools/setup.py zoo && touch $@

.venv/.all: $(SETUP)
	@python=$$(sh tools/find_python.sh) && "$$python" tools/setup.py all && touch $@
	@touch .venv/.demo .venv/.dev .venv/.zoo
