"""Speed, memory and accuracy of tfpe and of what one would use instead.

python -m benchmarks --help
"""
