"""Passes that replace layers without a kernel by layers with one."""
