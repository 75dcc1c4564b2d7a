"""Small networks as GLSL functions for the user's own shaders."""
