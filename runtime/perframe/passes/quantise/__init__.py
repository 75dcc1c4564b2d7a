"""Passes that let layers compute with bytes, or with floats in place of bytes."""

from perframe.passes.quantise import fake_quantize, fold_weights, fuse_quantized, keep_quantized, whole_products

__all__ = ["fake_quantize", "fold_weights", "fuse_quantized", "keep_quantized", "whole_products"]
