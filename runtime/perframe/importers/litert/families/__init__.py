"""The adapters of LiteRT's operators, a file for each group."""
