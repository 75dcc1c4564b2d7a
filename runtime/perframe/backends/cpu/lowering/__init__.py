"""What the CPU's families share to make steps of layers."""
