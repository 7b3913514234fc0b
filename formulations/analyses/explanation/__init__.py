"""What a formulation says, how large it would be for a problem, and what links are worth to it."""
