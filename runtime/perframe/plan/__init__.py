"""Plans: a model made ready for one backend and one set of input shapes, and refitted to others."""
