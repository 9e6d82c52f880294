"""Folders of Hugging Face: `config.json`, a tokenizer and safetensors, which vLLM, SGLang and TensorRT-LLM serve."""
