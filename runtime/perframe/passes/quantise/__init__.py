"""Passes that let layers compute with bytes, or with floats in place of bytes."""
