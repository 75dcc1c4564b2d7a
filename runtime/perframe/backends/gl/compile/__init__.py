"""Shader text: kernels, their variants, and linked programs."""
