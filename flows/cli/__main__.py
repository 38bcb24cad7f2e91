"""`python -m flows.cli` is the `ssrem` command."""

import sys

from flows.cli.main import main

sys.exit(main())
