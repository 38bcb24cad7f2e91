-- One row is a kind of speaker set in a corpus.
SELECT * FROM set_similarity ORDER BY corpus, list_position(['SC', 'SP', 'SS', 'Rand'], kind)
