"""What runs in the processes that fork for mutants: plain scripts that import nothing of gate, which may be what is mutated."""
