"""Shared code of the demos: the command line and the stage, shaders over the whole picture, texts, tensors on show."""
