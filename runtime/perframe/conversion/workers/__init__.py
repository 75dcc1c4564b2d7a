"""Scripts that convert models. They run in a Python that has PyTorch or TensorFlow, and need nothing of perframe."""
