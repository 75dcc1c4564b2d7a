"""The rules of layers that are not a kind of .sentis files with the same name, a group a file."""
