"""Arithmetic of sizes that is followed, so that a plan serves other sizes."""
