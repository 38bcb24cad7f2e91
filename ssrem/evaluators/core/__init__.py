"""What families of evaluators share: base classes, saved folders, archives, scaling."""
