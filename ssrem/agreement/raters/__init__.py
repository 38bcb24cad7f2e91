"""Agreement among raters, of ratings that are a table (raters, units) with gaps."""
