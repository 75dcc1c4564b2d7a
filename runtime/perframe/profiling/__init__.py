"""Profiles: what workers do in frames, layer by layer, and how long it takes."""
