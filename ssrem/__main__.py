"""`python -m ssrem` is the `ssrem` command."""

import sys

from ssrem.cli.main import main

sys.exit(main())
