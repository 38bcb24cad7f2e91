"""Rows of JSON, in lines or within one large value, and their types in Arrow."""
