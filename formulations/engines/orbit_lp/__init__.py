"""The orbit linear program: a fluid optimum that is constant on the orbits of symmetries."""
