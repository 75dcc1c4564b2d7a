"""OpenGL: compute shaders (4.3) and pixel shaders (3.3), which share their kernels' bodies and their lowering."""
