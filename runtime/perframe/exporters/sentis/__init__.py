"""Export of models to .sentis files, the format of Unity's Sentis and Inference Engine."""
