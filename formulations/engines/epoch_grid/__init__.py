"""The grid of epochs: time-expanded arcs, demands, memory and windows, from models to schedules."""
