"""Conversion of other frameworks' model files to ONNX, in processes of their own."""
