"""How a schedule is found and how a bound is proved."""
