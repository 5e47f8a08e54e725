"""Speed and size, each figure beside what it is compared with. Run ``python -m benchmarks``."""
