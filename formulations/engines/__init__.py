"""The machinery of formulations, one folder per idea."""
