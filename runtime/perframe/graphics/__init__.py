"""OpenGL itself, for the host and the GL backends: contexts, whose is current, and functions by name."""
