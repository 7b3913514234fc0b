"""Files of simulators and of viewers of traces."""
