"""From messages to turns, responses, speaker sets and candidates, by the statements of `sql`, in any database."""
