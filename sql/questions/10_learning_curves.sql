-- Did the trainings converge, and did any overfit?
-- best_epoch is the epoch whose weights are kept. If it is the last one, more epochs might have helped. If last_valid
-- is well above best_valid, the training had begun to overfit.
WITH validation AS (
    SELECT
        evaluator,
        version,
        arg_min(loss, epoch) AS first_valid,
        min(loss) AS best_valid,
        arg_max(loss, epoch) AS last_valid
    FROM learning_curves
    WHERE split = 'valid'
    GROUP BY evaluator, version
),

training AS (
    SELECT evaluator, version, arg_max(loss, epoch) AS last_train
    FROM learning_curves
    WHERE split = 'train'
    GROUP BY evaluator, version
)

SELECT
    e.evaluator,
    e.version,
    e.epochs,
    e.best_epoch,
    round(v.first_valid, 4) AS first_valid,
    round(v.best_valid, 4) AS best_valid,
    round(v.last_valid, 4) AS last_valid,
    round(t.last_train, 4) AS last_train,
    round(e.seconds, 1) AS seconds
FROM evaluators AS e
INNER JOIN validation AS v ON e.evaluator = v.evaluator AND e.version = v.version
LEFT JOIN training AS t ON e.evaluator = t.evaluator AND e.version = t.version
ORDER BY e.evaluator, e.version
