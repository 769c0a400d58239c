"""The operators, by the part of training code that their faults come from."""
