"""The parts of lowering that the CPU's families share."""
