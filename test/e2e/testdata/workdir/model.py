import torch


def make():
    torch.manual_seed(0)
    return torch.nn.Linear(8, 1)
