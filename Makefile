PYTHON ?= python3
TARGETS := setup run test test-large lint bench bench-search bench-pipeline campaign table clean

.PHONY: $(TARGETS)
.DEFAULT_GOAL := test

$(TARGETS):
	@$(PYTHON) bootstrap.py $@ $(ARGS)
