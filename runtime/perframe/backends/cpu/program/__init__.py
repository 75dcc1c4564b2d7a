"""Programs of the CPU: steps, the numbers that the steps read, and the memory that they use."""
