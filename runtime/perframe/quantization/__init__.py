"""Quantization makes a model smaller, and faster where bytes are multiplied faster than floats."""
