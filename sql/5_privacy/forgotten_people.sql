-- One row is an id of the people who are forgotten. Grain: id.
SELECT unnest($people::VARCHAR[]) AS id
