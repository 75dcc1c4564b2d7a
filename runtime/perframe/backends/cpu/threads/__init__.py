"""Threads of the CPU: jobs, and the helpers that take a share of a program."""
