"""Read and change settings, and accept those of a repository."""
