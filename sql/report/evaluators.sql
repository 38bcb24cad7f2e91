-- One row is a version of an evaluator.
SELECT * FROM evaluators ORDER BY evaluator DESC, version DESC
