"""The masked language model of mask-and-fill, fine-tuned from a sentence encoder."""
