"""Tensors of GL in CUDA, on NVIDIA GPUs: registration, mapping, and copies."""
