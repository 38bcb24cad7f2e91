"""Privacy of the people in a corpus: keyed pseudonyms, masks for identifying text, and exclusion of a person."""
