"""Programs as runtimes of collectives load them."""
