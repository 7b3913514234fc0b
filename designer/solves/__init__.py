"""What is asked of a drawing and told of it: requests, solves that run, sizes, results."""
