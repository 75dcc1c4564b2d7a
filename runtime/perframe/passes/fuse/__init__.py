"""Passes that let one kernel do the work of several layers."""
