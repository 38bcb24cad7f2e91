"""Single properties of a response, without a language model: novelty, own turn, fluency and specificity."""
