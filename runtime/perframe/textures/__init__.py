"""Textures to tensors and back, in the application's own GL context."""
