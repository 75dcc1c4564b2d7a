"""Passes that leave out what is not needed: constants are folded, layers merged."""

from perframe.passes.clean import (
    fix_reshapes,
    fold_constants,
    inline_branches,
    merge_duplicates,
    merge_moves,
    merge_slices,
    narrow_doubles,
    remove_noops,
    remove_unused,
    simplify_dft,
)

__all__ = [
    "fix_reshapes",
    "fold_constants",
    "inline_branches",
    "merge_duplicates",
    "merge_moves",
    "merge_slices",
    "narrow_doubles",
    "remove_noops",
    "remove_unused",
    "simplify_dft",
]
