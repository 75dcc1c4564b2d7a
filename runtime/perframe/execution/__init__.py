"""Runs: workers, the parts of a model, control flow, and what is recorded to run later."""
