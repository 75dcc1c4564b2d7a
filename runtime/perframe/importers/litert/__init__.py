"""Import of LiteRT (TensorFlow Lite) files: the file is read, and each operator becomes layers, without TensorFlow."""
