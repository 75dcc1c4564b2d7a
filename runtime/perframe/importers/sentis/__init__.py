"""Import of Unity's .sentis files, of Sentis 1.4 and later (Inference Engine)."""
