"""Programs of the CPU, refitted to other sizes."""
