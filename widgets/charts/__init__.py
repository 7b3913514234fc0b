"""Plotly figures, and the numbers that they show."""
