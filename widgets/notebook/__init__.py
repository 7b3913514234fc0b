"""Views for notebooks."""
