"""Programs of the CPU: steps, the numbers that they read, and the memory that they use."""
