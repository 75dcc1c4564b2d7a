"""OpenGL for the host and the GL backends: headless contexts, the current context, and GL functions by name."""
