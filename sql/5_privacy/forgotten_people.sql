-- One row is an id of the people to forget. Grain: id.
SELECT unnest($people::VARCHAR[]) AS id
