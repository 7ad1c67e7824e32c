"""How the checkout becomes the package `testbed` and how its tests start: link_package, pytest_names, pytest_main."""
