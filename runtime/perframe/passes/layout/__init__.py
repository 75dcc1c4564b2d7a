"""Passes that choose the order of dims in memory."""
