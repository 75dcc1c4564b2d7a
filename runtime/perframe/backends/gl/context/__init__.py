"""A GL context: its limits and functions, and the state that belongs to the caller."""
