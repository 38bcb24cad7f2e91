-- One row is a response of the split with its context, in random order by seed. Of each band of response lengths (up to
-- $short, $middle or $long words, or longer) the first $most are kept. Grain: response_id.
WITH heads AS (
    SELECT
        r.response_id,
        r.context,
        r.speaker,
        t.text AS response,
        len(regexp_extract_all(t.text, '\S+')) AS words,
        md5_number_lower($seed::VARCHAR || ':' || r.response_id::VARCHAR) AS draw
    FROM responses AS r
    INNER JOIN turns AS t ON r.corpus = t.corpus AND r.response_id = t.turn_id
    WHERE r.corpus = $corpus AND r.split = $split
),

ranked AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY words > $short, words > $middle, words > $long
            ORDER BY draw, response_id
        ) AS band_rank
    FROM heads
    QUALIFY band_rank <= $most
)

SELECT
    h.response_id,
    list(c.speaker ORDER BY c.turn_id) AS speakers,
    list(c.text ORDER BY c.turn_id) AS texts,
    any_value(h.speaker) AS responder,
    any_value(h.response) AS response
FROM (SELECT *, unnest(context) AS turn_id FROM ranked) AS h
INNER JOIN turns AS c ON c.corpus = $corpus AND h.turn_id = c.turn_id
GROUP BY h.response_id, h.draw
ORDER BY h.draw, h.response_id
