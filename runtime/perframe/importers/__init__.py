"""Importers: they read model files."""
