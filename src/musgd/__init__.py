"""MuSGD: momentum SGD with an orthogonalised half (Muon) for matrices."""

from musgd.groups import param_groups
from musgd.optimizer import MuSGD

__all__ = ["MuSGD", "param_groups"]
