"""From what a network saw to what a program does with it: boxes, points, masks, and things that are followed."""
