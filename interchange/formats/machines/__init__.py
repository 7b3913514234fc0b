"""What machines print: topologies as tools and libraries dump them."""
