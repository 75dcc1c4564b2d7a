"""Runs: workers, the parts of a model, control flow, and work that is recorded to run later."""
