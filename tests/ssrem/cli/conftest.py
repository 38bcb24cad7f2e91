"""Fixtures that look at what `ssrem run` made, and a server of the web."""

from support.small_home import copy, made
from support.web import web

__all__ = ["copy", "made", "web"]
