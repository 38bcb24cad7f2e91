"""How many random examples the costlier property tests try."""

import os

TIMES = int(os.environ.get("FUZZ", "1"))
"""1 in `make test`, 5 in `make test-slow`; FUZZ=20 in the environment tries twenty times as many."""
