PYTHON ?= python3
VENV := .venv
RUN := TF_CPP_MIN_LOG_LEVEL=3 $(VENV)/bin/python

.PHONY: demo test lint clean

demo: $(VENV)/installed
	$(RUN) examples/g2p.py

test: $(VENV)/installed
	$(RUN) -m pytest -n 2 --dist worksteal

lint: $(VENV)/installed
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --upgrade pip
	$(VENV)/bin/python -m pip install --quiet --editable '.[demo,test,lint]'
	touch $@

clean:
	rm -rf $(VENV) demo-output
