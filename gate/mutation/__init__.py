"""Plants faults in copies of a project, and asks its tests and its goldens whether they notice. LibCST is known here alone."""
