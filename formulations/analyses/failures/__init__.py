"""What a collective loses when a part of its cluster fails or lags.

`study` asks what every single loss costs (N-1), `lagging` what every straggler does; both take one
of each class of things that symmetries exchange (`parts`), and tell the rows of `nouns`.
"""
