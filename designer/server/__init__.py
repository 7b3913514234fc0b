"""Serving the application to a browser, and to nobody else: bounds, checks, sessions, the end."""
