"""Passes that leave out what is not needed: constants are folded, layers merged."""
