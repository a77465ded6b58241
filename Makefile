# Every command makes its own .venv, installs what it needs and runs. `make` alone lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help serve test check unit bench bench-producers bench-disk bench-growth bench-spark micro
.PHONY: long churn chaos pipeline fuzz clean packages kafka

ifndef PYTHON
PYTHON := $(shell .ci/python)
endif
export PYTHON
# Tests start the broker some hundred times: it shall be compiled once, as an installed one is.
unexport PYTHONDONTWRITEBYTECODE
BIN := .venv/bin
INSTALLED := .cache/installed
# A copy of the package in which setup.py has compiled what every request passes through. In
# .venv itself are the sources, so that an edit is in force at once.
COMPILED := .cache/compiled
WITH_COMPILED := PYTHONPATH=$(CURDIR)/$(COMPILED)
UNITS := wire log coordinator broker
SOURCES := $(shell find $(UNITS) -name '*.py' -not -path '*/tests/*')
# Three processes on two cores: one of them mostly waits, as conftest.py has it.
PYTEST := $(BIN)/pytest -ra --durations=10 --numprocesses=3 --dist=loadfile

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 24

# ARGS that say where the data is, or name a file that may, are not contradicted.
OWN_DATA = $(strip $(foreach word,--data-dir --config log.dir,$(findstring $(word),$(ARGS))))

serve: $(COMPILED)/ready ## run the broker on 127.0.0.1:9092 with its data in data/; ARGS="--listen ..."
	$(WITH_COMPILED) $(BIN)/klamm serve $(if $(OWN_DATA),,--data-dir data) $(ARGS)

# Unit tests run on the sources and on the compiled modules, real clients talk to a broker of the
# latter. With ARGS all is as in the sources.
test: packages check kafka $(if $(ARGS),,$(COMPILED)/ready) ## everything that must pass: static checks, unit tests, real clients
ifdef ARGS
	$(PYTEST) $(ARGS)
else
	$(PYTEST) $(UNITS)
	for folder in $(UNITS); do \
		rm -rf $(COMPILED)/klamm/$$folder/tests; \
		cp -r $$folder/tests $(COMPILED)/klamm/$$folder/; \
	done
	ln -sfn $(CURDIR)/docs $(COMPILED)/klamm/docs
	$(WITH_COMPILED) $(PYTEST) -m "not interpreted" compat_tests $(UNITS:%=$(COMPILED)/klamm/%)
endif

check: .venv/ready-for-tests ## the static checks: ruff, import contracts, mypy on the installed package
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	rm -rf build $(INSTALLED)
	KLAMM_PURE=1 $(BIN)/pip install --quiet --no-deps --no-build-isolation --target $(INSTALLED) .
	MYPYPATH=$(INSTALLED) $(BIN)/mypy -p klamm -p compat_tests -p benchmarks -p spark_examples | \
		sed 's#^$(INSTALLED)/klamm/##'

unit: .venv/ready-for-tests ## the unit tests, which need neither Java nor kcat
	$(BIN)/pytest $(UNITS) $(ARGS)

bench: packages .venv/ready-for-tests $(COMPILED)/ready ## klamm and Apache Kafka side by side, at most ten minutes
	$(WITH_COMPILED) $(BIN)/python -m benchmarks $(ARGS)

bench-producers: packages .venv/ready-for-tests $(COMPILED)/ready ## a wide matrix of producers, at most 25 minutes
	$(WITH_COMPILED) $(BIN)/python -m benchmarks --producers $(ARGS)

bench-disk: packages .venv/ready-for-tests $(COMPILED)/ready ## what depends on the disk: many partitions, long logs, compaction
	$(WITH_COMPILED) $(BIN)/python -m benchmarks.disk $(ARGS)

bench-growth: .venv/ready-for-tests $(COMPILED)/ready ## what a request costs with more partitions and connections
	$(WITH_COMPILED) $(BIN)/python -m benchmarks.growth $(ARGS)

bench-spark: packages .venv/ready-for-tests $(COMPILED)/ready ## the same with Spark as the client, in its own table
	$(WITH_COMPILED) $(BIN)/python -m benchmarks --spark $(ARGS)

micro: .venv/ready-for-tests $(COMPILED)/ready ## what decoding and encoding cost, message by message
	$(WITH_COMPILED) $(BIN)/python -m benchmarks.micro $(ARGS)

long: .venv/ready-for-tests ## the property tests with 25 times the examples
	HYPOTHESIS_PROFILE=long $(BIN)/pytest --timeout=7200 --durations=10 $(UNITS) $(ARGS)

churn: packages kafka $(COMPILED)/ready ## ten minutes of group members that restart at random
	$(WITH_COMPILED) KLAMM_CHURN_S=600 $(BIN)/pytest compat_tests/groups/test_churn.py $(ARGS)

chaos: packages kafka $(COMPILED)/ready ## ten minutes of transactions while brokers and clients are killed
	$(WITH_COMPILED) KLAMM_CHAOS_S=300 $(BIN)/pytest compat_tests/transactions/test_chaos.py $(ARGS)

pipeline: .venv/ready-for-spark $(COMPILED)/ready ## a small shop on Spark and klamm: every stage checks itself, and a picture
	@.ci/requirements java maven
	$(WITH_COMPILED) $(BIN)/python -m spark_examples.pipeline $(ARGS)

fuzz: long

clean: ## remove what these commands have made, downloads too; data/ stays
	rm -rf .venv .cache build *.egg-info .hypothesis .*_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# What the tests need from the system; installed where that is possible, else named.
packages:
	@.ci/requirements python compiler java maven kcat

# Before pytest, which would keep to itself how far the download is.
kafka: .venv/ready-for-tests
	@$(BIN)/python -m compat_tests.apache_kafka

# The environment is used again until pyproject.toml changes. The package is linked, not copied, so
# that an edit is in force at once.
.venv/ready: pyproject.toml
	@.ci/requirements python
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --editable .
	touch $@

.venv/ready-for-tests: pyproject.toml
	@.ci/requirements python
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --editable '.[test,spark]'
	touch .venv/ready .venv/ready-for-spark $@

.venv/ready-for-spark: pyproject.toml
	@.ci/requirements python
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --editable '.[spark]'
	touch .venv/ready $@

# Again whenever a source has changed. Where nothing can be compiled, the sources are copied.
$(COMPILED)/ready: setup.py pyproject.toml $(SOURCES) | .venv/ready
	@echo "compiling what every request passes through, for this version of the sources: a minute ..."
	rm -rf build $(COMPILED)
	$(BIN)/pip install --quiet --no-deps --target $(COMPILED) .
	@$(WITH_COMPILED) $(BIN)/klamm --version
	touch $@
