-- table: learning_curves
-- Early stopping keeps the epoch with the lowest validation loss, since later ones overfit the training split. The
-- epochs of a blend are regularisation strengths, of which it keeps the strongest that is about as good as the best.
SELECT l.*, e.best_epoch
FROM learning_curves AS l
INNER JOIN evaluators AS e ON l.evaluator = e.evaluator AND l.version = e.version
WHERE l.split = 'valid' AND l.loss < e.valid_loss - 1e-9 AND NOT starts_with(e.evaluator, 'blend')
