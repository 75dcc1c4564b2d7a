"""The lowering of each family of layers to steps of the CPU."""
