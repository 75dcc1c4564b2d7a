"""How each family of layers becomes steps of the CPU."""
