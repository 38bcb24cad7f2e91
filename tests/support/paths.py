"""Where the project lies, and the annotated sets and dumps beside it that tests may use."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
