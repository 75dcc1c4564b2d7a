"""Symbolic sizes: shape inference with open dims, and plans that serve other sizes."""
