"""The JSON of the project, `topoloom/1`, and what every reader shares: files, quantities, sizes."""
