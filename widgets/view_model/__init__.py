"""Data of the canvas and the plots as plain values; nothing here knows a browser."""
