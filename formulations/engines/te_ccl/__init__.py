"""The machinery of TE-CCL: its integer program, its linear program and its rounds."""
