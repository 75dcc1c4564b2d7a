"""Passes that find functions which exporters wrote in several layers."""
