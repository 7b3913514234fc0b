"""File formats, one module each; `topoloom` is the project's own."""
