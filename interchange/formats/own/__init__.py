"""Documents of our own among the formats."""
