-- What could not land, and why?
-- One row is a reason in a corpus. first_seen is its first occurrence in the dump. Messages that were read and are
-- not in quarantine have landed.
SELECT
    q.corpus,
    q.record,
    q.reason,
    count(*) AS records,
    CASE WHEN q.record = 'message' THEN round(count(*) / max(c.messages_read), 5) END AS share_of_messages_read,
    arg_min(q.file || ':' || q.line, q.row_no) AS first_seen
FROM quarantine AS q
INNER JOIN corpora AS c ON q.corpus = c.corpus
GROUP BY q.corpus, q.record, q.reason
ORDER BY q.corpus ASC, records DESC
