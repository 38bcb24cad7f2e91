-- One row is a version of an evaluator, with the figures of its training.
SELECT
    *,
    {
        'train_responses': train_responses, 'valid_responses': valid_responses,
        'test_responses': test_responses, 'valid_loss': valid_loss, 'best_epoch': best_epoch, 'seconds': seconds
    } AS figures
FROM evaluators ORDER BY evaluator DESC, version DESC
