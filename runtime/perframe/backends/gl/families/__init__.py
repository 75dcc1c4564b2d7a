"""The lowering of each family of layers to draws and dispatches."""
