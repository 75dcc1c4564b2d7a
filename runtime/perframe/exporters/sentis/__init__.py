"""Export of models to .sentis files, which Unity's Sentis and Inference Engine load."""
