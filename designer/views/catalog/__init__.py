"""The catalog on the page: solves that it answers, and the view of what it holds."""
