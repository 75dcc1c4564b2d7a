"""The commands of `perframe`, and what they show."""
