"""GL programs: steps, command lists, and timers."""
