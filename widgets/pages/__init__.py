"""What is handed on: pages that open from disk, and files of what a view shows."""
