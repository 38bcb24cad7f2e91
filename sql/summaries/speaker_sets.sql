-- speaker sets: mean similarity of a speaker's turns, 95% interval
SELECT corpus, kind, mean AS similarity, low, high, speakers, of_speakers, sets, pairs FROM set_similarity
ORDER BY corpus, list_position(['SC', 'SP', 'SS', 'Rand'], kind)
