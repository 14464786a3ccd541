# `make demo` and `make test` are all that a fresh machine needs (Python 3.11 or later, make).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEMO ?= demo

.PHONY: install demo test full corpus lab check notebooks ops measured site format clean types lint layers words added soak fuzz fault-pairs mutants release-check lowest

# Files are compiled when they are first imported: with pip that is a minute for all of them.
$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable '.[cluster,cuda,docs,kernels,gpu,lab,serve,test]'
	-$(BIN)/python -m pip install --quiet ncu-report  # its tests skip without it
	touch $@

install: $(VENV)/.installed

demo: install  ## run the quickstart notebook headless and show what it made
	$(BIN)/python scripts/demo.py --into $(DEMO)

lab: install  ## open JupyterLab on the demo (make demo first)
	test -f $(DEMO)/quickstart.ipynb || $(BIN)/triton-magics quickstart $(DEMO)
	$(BIN)/jupyter lab --notebook-dir $(DEMO) $(DEMO)/quickstart.ipynb

soak: install  ## 1,000 jobs, a tenth of them faulty: nothing grows, every verdict is right
	$(BIN)/python tests/faults/soak.py

fuzz: install  ## everything that reads what comes from outside, guided by coverage; SECONDS=60 each
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[fuzz]'
	$(BIN)/python tests/faults/fuzz.py --seconds $(or $(SECONDS),60)

fault-pairs: install  ## two faults at a time, at random; MINUTES=100, SEED=1, PROCESSES=1
	$(BIN)/python tests/faults/pairs.py --minutes $(or $(MINUTES),100) --seed $(or $(SEED),1) --processes $(or $(PROCESSES),1)

release-check: install  ## build, metadata, version, changelog, and the wheel in an empty environment
	$(BIN)/python scripts/release_check.py

lowest: install  ## the lowest versions that pyproject.toml accepts
	$(BIN)/python scripts/release_check.py --lowest

mutants: install  ## small changes of the judge, clock, statistics, workflow: tests must see them
	$(BIN)/python tests/mutation/mutants.py --jobs $(or $(JOBS),2)
	$(BIN)/python tests/mutation/mutants.py --report

NAMES_ONLY = --follow-imports=silent --implicit-reexport --no-warn-unused-ignores \
    $(foreach code,misc import-not-found import-untyped no-untyped-call no-untyped-def type-arg \
    no-any-return arg-type union-attr operator assignment var-annotated index, \
    --disable-error-code $(code))

check: added lint types layers words  ## files in git, lint, format, types, layers, words

added:  ## a clone lacks a file that was never added to git, though all works here
	@new=$$(git ls-files --others --exclude-standard -- '*.py' '*.md' '*.json' 2>/dev/null); \
	    test -z "$$new" || { echo "not in git (git add them, or ignore them):"; echo "$$new"; exit 1; }

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install  ## the package strictly; of the scripts the names, since no test runs them all
	$(BIN)/mypy
	$(BIN)/mypy $(NAMES_ONLY) scripts/*.py tests/benchmarks/*.py

layers: install
	$(BIN)/lint-imports

words: install  ## plain technical English in names, docstrings, messages and documents
	$(BIN)/python scripts/check_words.py

test: install  ## the whole test suite; GPU tests skip themselves without a GPU
	$(BIN)/python scripts/run_tests.py -m "not slow"

full: install  ## with the tests that take long
	$(BIN)/python -m pytest

corpus: install  ## every right, wrong and cheating kernel through the real validation; JOBS=2
	$(BIN)/python tests/faults/corpus.py --guards --jobs $(or $(JOBS),2) --json corpus.json \
	    $(shell $(BIN)/python -c "import torch; print('--gpu' * torch.cuda.is_available())")

notebooks: install  ## write the quickstart and the tour, execute them, and ship them with outputs
	rm -rf build/notebooks
	$(BIN)/python scripts/quickstart.py
	$(BIN)/python scripts/tour.py
	for name in quickstart tour; do \
	    $(BIN)/python scripts/demo.py --notebook $$name --into build/notebooks/$$name && \
	    $(BIN)/python scripts/notebook_size.py build/notebooks/$$name/$$name.ipynb \
	        notebooks/$$name.ipynb || exit 1; done

ops: install  ## the ops' notebooks, executed, and docs/measured/ops.md; needs a GPU
	$(BIN)/python scripts/ops.py run
	$(BIN)/python scripts/ops.py accuracy
	$(BIN)/python scripts/ops.py models
	$(BIN)/python scripts/ops.py gradients
	$(BIN)/python scripts/ops.py reading
	$(BIN)/python scripts/ops.py measure

measured: install  ## what needs a GPU and is not done yet, in parts: LIMIT=590 seconds
	$(BIN)/python scripts/gpu_steps.py --limit $(or $(LIMIT),590)

site: install  ## the documentation as a site, in build/site; a broken link or anchor fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(DEMO) build dist
