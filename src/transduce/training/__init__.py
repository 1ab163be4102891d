"""Section 5 of the paper: loss, optimizer, schedule, checkpoints, and the loop itself."""
