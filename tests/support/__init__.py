"""What tests are written with: check, corpora, simulated devices."""
