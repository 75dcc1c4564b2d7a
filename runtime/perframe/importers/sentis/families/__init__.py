"""The adapters of layer kinds that need more than a rename, a group a file."""
