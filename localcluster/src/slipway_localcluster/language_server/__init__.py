"""A small language model with random weights behind OpenAI's API: stands in for vLLM and SGLang in the demo."""
