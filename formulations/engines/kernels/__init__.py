"""Inner loops that numba compiles: arrays in, arrays out; it infers their types itself."""
