"""What lessons need beside their text."""
