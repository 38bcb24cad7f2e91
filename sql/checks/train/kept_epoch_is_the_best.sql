-- table: learning_curves
-- A version has the weights of the epoch with the lowest validation loss, since later epochs overfit the training
-- split. The epochs of a blend are regularisation strengths, of which it keeps the strongest that is about as good as
-- the best.
SELECT e.evaluator, e.version, e.best_epoch, e.valid_loss, k.loss, l.lowest
FROM (
    SELECT evaluator, version, min(loss) AS lowest
    FROM learning_curves
    WHERE split = 'valid'
    GROUP BY evaluator, version
) AS l
INNER JOIN evaluators AS e ON l.evaluator = e.evaluator AND l.version = e.version
LEFT JOIN learning_curves AS k
    ON l.evaluator = k.evaluator AND l.version = k.version AND e.best_epoch = k.epoch AND k.split = 'valid'
WHERE
    (abs(k.loss - e.valid_loss) <= 1e-9) IS NOT TRUE
    OR (l.lowest < e.valid_loss - 1e-9 AND NOT starts_with(e.evaluator, 'blend'))
