PYTHON ?= python3
VENV := .venv
RUN := TF_CPP_MIN_LOG_LEVEL=3 $(VENV)/bin/python

# The real tensor2tensor, which wants Python 3.11 and an old TensorFlow.
T2T := .venv-t2t

# The lower bounds of pyproject.toml.
OLDEST := .venv-oldest

.PHONY: demo test test-backends soak lint docs bench compat-live test-oldest clean

demo: $(VENV)/installed
	$(RUN) examples/g2p.py

test: $(VENV)/installed
	$(RUN) -m pytest -n 2 --dist worksteal

# JAX as it comes, JAX with float64, torch.
test-backends: $(VENV)/torch
	KERAS_BACKEND=jax $(RUN) -m pytest -n 2 --dist worksteal tests
	KERAS_BACKEND=jax JAX_ENABLE_X64=1 $(RUN) -m pytest -n 2 --dist worksteal \
		tests/test_accuracy.py tests/test_backends.py tests/test_cases.py \
		tests/test_layer.py tests/test_positions.py
	KERAS_BACKEND=torch $(RUN) -m pytest -n 2 --dist worksteal tests

soak: $(VENV)/installed
	SOAK=20000 $(RUN) -m pytest tests/test_endurance.py

docs: $(VENV)/installed
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict --quiet

lint: $(VENV)/installed
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

bench: $(VENV)/installed
	$(RUN) -m benchmarks

compat-live: $(VENV)/installed $(T2T)/installed
	$(T2T)/bin/python compat/golden/make_goldens.py $(T2T)/made
	$(T2T)/bin/python compat/golden/make_checkpoints.py $(T2T)/made
	TFPE_GOLDENS=$(T2T)/made $(RUN) -m pytest compat/test_tensor2tensor.py \
		compat/test_tensor2tensor_module.py tests/migration

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --upgrade pip
	$(VENV)/bin/python -m pip install --quiet \
		--editable '.[bench,demo,docs,export,lint,test]'
	touch $@

$(VENV)/torch: $(VENV)/installed
	$(VENV)/bin/python -m pip install --quiet --editable '.[torch]'
	touch $@

$(T2T)/installed: compat/golden/requirements.txt
	$(PYTHON) -m venv $(T2T)
	$(T2T)/bin/python -m pip install --quiet --requirement $<
	$(T2T)/bin/python -m pip install --quiet --no-deps tensor2tensor==1.15.7
	touch $@

test-oldest:
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --editable '.[test]' \
		keras==3.13.0 tensorflow==2.20.0 numpy==2.0.2 keras-hub==0.25.0
	TF_CPP_MIN_LOG_LEVEL=3 $(OLDEST)/bin/python -m pytest -n 2 --dist worksteal \
		-W "ignore:In the future:FutureWarning"

clean:
	rm -rf $(VENV) $(T2T) $(OLDEST) demo-output
