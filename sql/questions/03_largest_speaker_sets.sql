-- Who has the largest speaker sets?
-- A speaker's SS is all that they said in a split; it holds one SC per conversation and one SP per partner. Here all
-- splits are counted together.
SELECT
    corpus,
    turns.speaker,
    count(*) AS turns,
    count(DISTINCT turns.conversation_id) AS conversations,
    round(count(*) / count(DISTINCT turns.conversation_id), 1) AS turns_per_conversation,
    count(DISTINCT turns.addressee) FILTER (WHERE sp.turn_id IS NOT NULL) AS partners,
    round(count(sp.turn_id) / nullif(partners, 0), 1) AS turns_per_partner
FROM ss
INNER JOIN turns USING (corpus, turn_id)
LEFT JOIN sp USING (corpus, turn_id)
GROUP BY corpus, turns.speaker
ORDER BY turns DESC, turns.speaker ASC
LIMIT 20
