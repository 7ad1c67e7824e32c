"""Programs in files of earlier versions, and what they give."""
