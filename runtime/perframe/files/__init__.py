"""Perframe's own model files: safetensors files with the graph in their header, and encrypted files."""
