-- versions in this home folder
SELECT evaluator, version, promoted, valid_loss, train_responses AS trained_on, trained_at, why, signature
FROM evaluators ORDER BY evaluator DESC, version DESC
