"""What all tests share."""

from hypothesis import settings

# A shared or busy machine is slow now and then; a law does not depend on how long its example took.
settings.register_profile("transduce", deadline=None)
settings.load_profile("transduce")
