"""Plans of GL for other sizes: one program, whose numbers are written anew."""
