"""Programs of the CPU for other sizes than those that they were made for."""
