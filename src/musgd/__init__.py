"""MuSGD: momentum SGD with an orthogonalised half (Muon) for matrices."""

from musgd.optimizer import MuSGD, param_groups

__all__ = ["MuSGD", "param_groups"]
