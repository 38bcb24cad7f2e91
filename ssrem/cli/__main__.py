"""`python -m ssrem.cli` is the `ssrem` command."""

import sys

from ssrem.cli.main import main

sys.exit(main())
