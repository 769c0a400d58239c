"""What `--help` says below the options: exit codes, shell completion, examples. A leading \\b keeps a paragraph's lines."""

GATE = """\b
Exit codes: 0 identical, 1 drift, 2 usage, 3 not judged, 4 nondeterministic,
70 a fault of gate itself, 130 interrupted.

\b
Shell completion, to be put where your shell starts:
  bash  eval "$(_GATE_COMPLETE=bash_source gate)"
  zsh   eval "$(_GATE_COMPLETE=zsh_source gate)"
  fish  _GATE_COMPLETE=fish_source gate | source
"""

VERIFY = """\b
Examples:
  gate verify                            all goldens of the hardware that is here
  gate verify digits --torch all         one scenario, every configured torch
  gate verify --goldens goldens/h200     the goldens of one GPU
  gate verify digits --base main         where nothing is recorded: against main, here
  git bisect run gate verify --bisect
"""

RECORD = """\b
Examples:
  gate record                            every scenario, on the hardware that is here
  gate record digits --torch 2.9.1       one scenario under another torch
  gate record digits --update --reason "Nesterov by default"
  gate record --from .gate/runs/ID       adopt what a failed verify kept
"""

DIFF = """\b
Examples:
  gate diff goldens/cpu/torch-2.13.0/digits .gate/runs/ID/cpu/torch-2.13.0/digits
  gate diff A B --json -
"""

DOCTOR = """\b
Examples:
  gate doctor                            what can be judged here, and how to get the rest
  gate doctor --clean --dry-run          what takes space for nothing
  gate doctor --clean --days 0           remove it, every kept run too
"""

INIT = """\b
Examples:
  gate init                              find the script here that trains
  gate init train.py
"""

BENCH = """\b
Exit codes: 0, also for slower unless --fail-slower; 1 bits differ (no time is
shown); 3 not judged; 4 an arm differs from itself.

\b
Verdicts: slower and faster take eight pairs or more, the sign test at 1 %, and
an interval of the median ratio (95 %) beyond the margin; no-difference takes
that interval within the margin; inconclusive is all else.

\b
Examples:
  gate bench musgd-step                  as [tool.gate.bench.musgd-step] says
  gate bench musgd-step --pairs 20 --markdown docs/speed.md
  gate bench musgd-step --fail-slower    in CI: exit 1 where an arm is slower
  gate bench detector-fit --seconds 540 --journal fit    in parts, also on
                                         several machines of one kind
"""

CHECK = """\b
Examples:
  gate check                             what this branch and the work tree changed
  gate check --since HEAD~1 --explain    the last commit, and why each test was taken
  gate check --torch 2.9.1 --all         every test under another torch
  gate check --junit check.xml --json check.json
"""

MUTATE = """\b
Examples:
  gate mutate --since HEAD~1             the lines that the last commit changed
  gate mutate src/musgd/update.py        one file, every line
  gate mutate src --witnesses first      faster: stop at the first that notices
  gate mutate --operators                the kinds of faults, each with an example

\b
Pardon a fault that changes nothing, on its line or alone above it:
  # gate: equivalent REASON
"""

STATUS = """\b
Examples:
  gate status                            a line for each of [tool.gate.required]
  gate status --explain                  every change since, with its commit
  gate status --keep                     records of the GPU, into the repository
  gate status --write                    figures in documents, from the records

\b
States: fresh; stale (what was read has changed: the file, and the first commit
that changed it); inconclusive (it ran and failed, or cannot say); missing
(no record, or one of tests that were skipped: skipped is not checked).
"""

RUN = """\b
Exit codes: the worst of its lines. What a fresh record stands for is not done
again. Without --since the whole tree is the change, and no golden is compared
with an earlier one.

\b
Examples:
  gate run                               the whole tree
  gate run --since main                  what this branch changes
  gate run --allow-stale h200            where no such GPU is: says so, and goes on
"""
