"""profile.start and profile.end around ops, the event sink, reports and traces. Not written yet."""
