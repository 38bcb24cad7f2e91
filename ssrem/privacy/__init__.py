"""People behind a corpus: keyed pseudonyms, masks over what identifies them in text, and leaving someone out."""
