"""The commands, one a file. Each imports what it needs in its function, so that `perframe --help` answers at once."""
