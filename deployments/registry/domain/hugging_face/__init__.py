"""Folders of Hugging Face: `config.json`, a tokenizer and safetensors, which vLLM and SGLang serve."""
