"""Passes between textures and tensors."""
