"""The memory of tensors on GL, and its pool."""
