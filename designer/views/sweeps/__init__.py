"""The Sweeps view: rows of sweeps that the server was given, filtered, plotted and opened."""
