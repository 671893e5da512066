"""What tests share: runs, mutants, command lines, servers and clusters. Holds no test."""
