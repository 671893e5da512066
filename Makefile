PYTHON ?= python3
TARGETS := setup run hunt-thorough quick test test-large test-browser lint bench bench-search bench-pipeline campaign table demo site docs clean

.PHONY: $(TARGETS)
.DEFAULT_GOAL := test

$(TARGETS):
	@$(PYTHON) bootstrap.py $@ $(ARGS)
