"""The project's pages: blocks that are run, and pages on specs that are written."""
