"""Values as pictures and pages: the data flow of modules, the arena over time, rooflines."""
