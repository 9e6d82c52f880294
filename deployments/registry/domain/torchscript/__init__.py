"""TorchScript archives, read without PyTorch."""
