"""Passes that replace layers without a kernel by layers with one."""

from perframe.passes.lower import einsum_products, spell_out, split_phases

__all__ = ["einsum_products", "spell_out", "split_phases"]
