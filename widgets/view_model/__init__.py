"""What the canvas and the plots are told, as plain values; nothing here knows a browser."""
