"""Models as files of other formats."""
