"""Whether the code still gives the results that it gave before: tables, answers of the command line, reports.

python -m benchmarks.same_results keep FOLDER                    run everything, and keep the results in FOLDER
python -m benchmarks.same_results compare FOLDER                 run everything again into FOLDER-now, print differences
python -m benchmarks.same_results compare FOLDER --with OTHER    the same with results kept in OTHER; nothing is run

The default run needs the annotated sets of ../shared/data/annotations and takes minutes; `--homes small` leaves it out.
Where names have changed on purpose, RENAMES says so, and `--renames FILE` adds to it (a JSON object of the same form).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.same_results import renames
from benchmarks.same_results.comparing import compare
from benchmarks.same_results.keeping import keep


def main() -> int:
    """Keep or compare; 1 where a command fails or something differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("mode", choices=("keep", "compare"))
    parser.add_argument("folder", type=Path, help="results that are kept; keep makes it")
    parser.add_argument("--homes", nargs="+", choices=("default", "small"), default=["default", "small"])
    parser.add_argument(
        "--with", dest="other", type=Path, metavar="FOLDER", help="compare with these results"
    )
    parser.add_argument(
        "--into", type=Path, metavar="FOLDER", help="new folder of what compare runs (default: FOLDER-now)"
    )
    parser.add_argument("--renames", type=Path, metavar="FILE", help="JSON object that adds to RENAMES")
    parser.add_argument("--tolerance", type=float, default=1e-6, help="of numbers (default: %(default)g)")
    options = parser.parse_args()
    folder = options.folder.resolve()
    if options.renames:
        renames.add(options.renames)
    if options.mode == "keep":
        failed = keep(folder, options.homes)
        print(f"{failed} commands failed" if failed else f"kept in {folder}")
        return 1 if failed else 0
    if options.other:
        other = options.other.resolve()
    else:
        other = (options.into or folder.with_name(f"{folder.name}-now")).resolve()
        keep(other, options.homes)
    counted = compare(folder, other, options.tolerance)
    print(f"{counted} differences" if counted else "no difference")
    return 1 if counted else 0


if __name__ == "__main__":
    sys.exit(main())
