"""Graphs as other tools keep and draw them."""
