"""Passes that choose between a backend and the host."""
