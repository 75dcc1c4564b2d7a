"""How each family of layers becomes draws and dispatches."""
