"""What is shown, in words and tables of words."""
