"""The commands of `perframe` and their reports."""
