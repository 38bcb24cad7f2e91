-- table: learning_curves
-- Early stopping keeps the epoch with the lowest validation loss; a later one has learned the training split.
-- A blend's epochs are strengths of regularisation: it takes the strongest that is about as good as the best.
SELECT l.*, e.best_epoch
FROM learning_curves AS l
INNER JOIN evaluators AS e ON l.evaluator = e.evaluator AND l.version = e.version
WHERE l.split = 'valid' AND l.loss < e.valid_loss - 1e-9 AND e.evaluator NOT IN ('blend', 'blend-ref')
