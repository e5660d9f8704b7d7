PYTHON ?= python3
VENV := .venv
RUN := TF_CPP_MIN_LOG_LEVEL=3 $(VENV)/bin/python

# The real tensor2tensor, which wants Python 3.11 and an old TensorFlow.
T2T := .venv-t2t

# The lower bounds of pyproject.toml, which want Python 3.11 or 3.12: the first of
# these that runs, or the one that is named by OLDEST_PYTHON=...
OLDEST := .venv-oldest
OLDEST_PYTHON ?= $(shell for python in $(PYTHON) python3.11 python3.12; do \
	$$python -c 'import sys; sys.exit(sys.version_info[:2] not in [(3, 11), (3, 12)])' \
	2>/dev/null && echo $$python && break; done)
OLDEST_TESTS := tests/refusals compat/test_layouts.py compat/test_tensor2tensor.py \
	$(patsubst %,tests/test_%.py,accuracy api cases channels conventions exporters \
	graphs jacobian keras layer masks memory positions properties saving sequences \
	serialization tensor2tensor widths)

# The pages need less than the rest: without `.venv` they get an environment of their own.
DOCS := $(if $(wildcard $(VENV)/installed),$(VENV),.venv-docs)
MKDOCS = NO_MKDOCS_2_WARNING=1 TF_CPP_MIN_LOG_LEVEL=3 $(DOCS)/bin/python -m mkdocs

# A clean environment for the wheel, and the archive's own tests.
PACKAGE := .venv-package
PACKAGED := $(CURDIR)/$(PACKAGE)/bin/python -P
ARCHIVE_TESTS := tests/test_channels.py tests/test_serialization.py \
	tests/test_conventions.py compat/test_conventions.py

# What touches no backend, or starts its own, is tested once.
ONE_BACKEND := $(patsubst %,'--ignore-glob=*/test_%.py',command_line* conventions* \
	devices examples files* first_use identif* pages plot* types)

# Mutants that `make mutants` draws.
N ?= 60
SEED ?= 0

.PHONY: demo test test-backends test-oldest soak lint docs serve package bench \
	compat-live mutants clean

demo: $(VENV)/installed
	@echo "Trains three small Transformers, without positions and in both layouts: five minutes."
	$(RUN) examples/g2p.py

test: $(VENV)/installed
	@echo "Runs the tests on TensorFlow, in about ten minutes on two cores."
	$(RUN) -m pytest -n 2 --dist worksteal

# JAX as it comes, JAX with float64, torch.
test-backends: $(VENV)/torch
	SOAK=100 KERAS_BACKEND=jax $(RUN) -m pytest -n 2 --dist worksteal tests \
		$(ONE_BACKEND)
	KERAS_BACKEND=jax JAX_ENABLE_X64=1 $(RUN) -m pytest -n 2 --dist worksteal \
		tests/test_accuracy.py tests/test_backends.py tests/test_cases.py \
		tests/test_integers.py tests/test_layer.py tests/test_positions.py
	SOAK=100 KERAS_BACKEND=torch $(RUN) -m pytest -n 2 --dist worksteal tests \
		$(ONE_BACKEND)

test-oldest:
ifeq ($(strip $(OLDEST_PYTHON)),)
	@echo "test-oldest is skipped: TensorFlow 2.16 needs Python 3.11 or 3.12, and there"
	@echo "is neither here; OLDEST_PYTHON=... names one."
else
	$(MAKE) --no-print-directory $(OLDEST)/installed
	TF_CPP_MIN_LOG_LEVEL=3 $(OLDEST)/bin/python -m pytest -n 2 --dist worksteal -rs \
		-W "ignore:In the future:FutureWarning" $(OLDEST_TESTS)
endif

soak: $(VENV)/installed
	SOAK=20000 $(RUN) -m pytest tests/test_endurance.py

# A dead link or anchor within the site is an error (with --quiet it would not be).
docs: $(DOCS)/installed
	$(MKDOCS) build --strict
	@echo "The pages are in site/: open site/index.html in a browser, or run 'make serve'."

serve: $(DOCS)/installed
	$(MKDOCS) serve

# Builds the archive and from it the wheel, and tries both outside of the checkout.
package:
	rm -rf dist $(PACKAGE)
	$(PYTHON) -m venv $(PACKAGE)
	$(PACKAGED) -m pip install --quiet build
	$(PACKAGED) -m build --outdir dist . > $(PACKAGE)/build.log
	$(PACKAGED) -m pip install --quiet "$$(echo dist/*.whl)[cli]" \
		hypothesis mpmath pytest
	sed -n '/^```python$$/,/^```$$/{//!p};/^```$$/q' README.md > $(PACKAGE)/readme.py
	cd $(PACKAGE) && TF_CPP_MIN_LOG_LEVEL=3 $(PACKAGED) readme.py
	cd $(PACKAGE) && bin/tfpe --version && bin/tfpe conventions paper
	mkdir $(PACKAGE)/archive
	tar -xzf dist/*.tar.gz -C $(PACKAGE)/archive --strip-components 1
	cd $(PACKAGE)/archive && TF_CPP_MIN_LOG_LEVEL=3 $(PACKAGED) -m pytest -q \
		$(ARCHIVE_TESTS)
	@echo "dist/ has the archive and the wheel; with all that it needs the wheel takes:"
	@du -sh $(PACKAGE)/lib

lint: $(VENV)/installed
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

bench: $(VENV)/installed
	$(RUN) -m benchmarks

mutants: $(VENV)/installed
	$(RUN) tests/mutants.py --count $(N) --seed $(SEED)

compat-live: $(VENV)/installed $(T2T)/installed
	$(T2T)/bin/python compat/golden/make_goldens.py $(T2T)/made
	$(T2T)/bin/python compat/golden/make_checkpoints.py $(T2T)/made
	$(T2T)/bin/python compat/golden/make_variants.py $(T2T)/made/variants
	TFPE_GOLDENS=$(CURDIR)/$(T2T)/made $(RUN) -m pytest \
		compat/test_tensor2tensor.py compat/test_tensor2tensor_module.py \
		tests/migration
	$(T2T)/bin/python compat/golden/run_guide.py $(T2T)/made
	$(VENV)/bin/tfpe migrate $(T2T)/made/variants/unidirectional \
		--target-space 3 --check $(T2T)/made/guide/reference.npz
	$(T2T)/bin/python compat/golden/time_decoding.py $(T2T)/made/decoding
	$(RUN) -m benchmarks.decoding $(T2T)/made/decoding

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --upgrade pip
	$(VENV)/bin/python -m pip install --quiet \
		--editable '.[bench,demo,docs,export,lint,test]'
	touch $@

.venv-docs/installed: pyproject.toml
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --editable '.[docs]'
	touch $@

$(VENV)/torch: $(VENV)/installed
	$(VENV)/bin/python -m pip install --quiet --editable '.[torch]'
	touch $@

$(OLDEST)/installed: pyproject.toml
	$(OLDEST_PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --editable '.[oldest]' \
		keras==3.3.3 tensorflow==2.16.2 numpy==1.26.4
	touch $@

$(T2T)/installed: compat/golden/requirements.txt
	$(PYTHON) -m venv $(T2T)
	$(T2T)/bin/python -m pip install --quiet --requirement $<
	$(T2T)/bin/python -m pip install --quiet --no-deps tensor2tensor==1.15.7
	touch $@

clean:
	rm -rf $(VENV) $(T2T) $(OLDEST) $(PACKAGE) .venv-docs build demo-output dist site \
		.hypothesis .mypy_cache .pytest_cache .ruff_cache *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
