"""List scheduling in continuous time: candidate routes, priorities, multistart."""
