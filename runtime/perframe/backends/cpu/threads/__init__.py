"""Threads of the CPU: jobs, and the helpers that run chunks of a program's steps."""
