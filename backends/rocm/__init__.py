"""AMD GPUs, by HIP: code objects of both stacks, which lld links."""
